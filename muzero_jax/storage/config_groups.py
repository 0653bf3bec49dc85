"""The groups of a config: what a network, a search, self-play, the replay, targets, the optimiser and evaluation are.

Each field is a flag `--group.field` of `experiments/train.py`: its range is in the annotation, its help below.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from muzero_jax.storage.fields import (
    Fact,
    Name,
    NotNegativeFloat,
    NotNegativeInt,
    PositiveFloat,
    PositiveInt,
    PositiveShare,
    Range,
    Simulations,
    UnitInterval,
)

Games = Annotated[int, Meta(gt=0, lt=2**31, multiple_of=2, description="a positive even integer")]
"""Openings are played with both colours."""
Option = Annotated[str, Meta(pattern=r"^[^\W\d]\w*=", description="name=value")]
RATE = Range(
    0.25, 4.0, "2e-3 with batches of 512: 70%, smaller ones 49%; Muon wants some 5 times more", is_relative=True
)
RANDOM_MOVES = Range(1 / 3, 3.0, "two random moves a game beat one on Hex 5x5", is_relative=True, most=0.5)
SEARCH_VALUE = Range(0.0, 0.5, "0.25 scored 80% and 0 84% on Hex 5x5, without canonical", log=False)
Fixed = Fact(fixed=True)
BuiltIn = Fact(fixed=True, built_in=True)


@dataclass(frozen=True)
class NetworkConfig:
    """The learned model."""

    kind: Annotated[Literal["mlp", "observation", "tower", "attention", "fully_convolutional"], BuiltIn] = "mlp"
    """mlp: dense layers; observation: MLPs that imagine the next observation, for small boards; tower: convolutions;
    attention: a transformer over the board's cells; fully_convolutional: convolutions that imagine the next
    observation, with the same weights for every board size"""
    file: Annotated[Name | None, Fact(common=True, short="--network")] = None
    """Python file with a network of your own, in place of `kind`: make_model(environment, support, **options)
    -> Model (docs/your-own-network.md)"""
    options: Annotated[tuple[Option, ...], Fixed] = ()
    """options of that file's make_model, name=value each; values are Python literals, or else text"""
    width: Annotated[int, Meta(ge=1, le=65_536), BuiltIn._replace(common=True)] = 128
    """units of the MLPs, channels of the tower or of a cell's token; attention has a head for each 32 of them"""
    num_blocks: Annotated[int, Meta(ge=0, le=1_000), BuiltIn] = 1
    """residual blocks of representation, of dynamics and of prediction, each"""
    activation: Annotated[Literal["relu", "silu", "gelu"], BuiltIn] = "relu"
    """nonlinearity after each layer"""
    compute_dtype: Literal["auto", "float32", "bfloat16", "bfloat16_products", "float16"] = "auto"
    """arithmetic of the networks; auto: bfloat16 on TPUs and on GPUs from compute capability 8 on, bfloat16_products
    on CPUs with AMX, else float32. bfloat16_products: float32, but what the trunks multiply (of towers: convolutions of
    32 channels and more) is rounded to bfloat16. float16: for a T4, with a scaled loss, never timed on an accelerator.
    Parameters are float32 always"""
    num_bins: Annotated[int, Meta(ge=1, le=100_000), Fixed] = 21
    """bins of the categorical value and reward, from one end of the support to the other; 1 makes the heads scalar"""
    support_range: Annotated[PositiveFloat, Fixed] = 1.0
    """the largest value and reward that can be said, of either sign: 1 in games that are won or lost"""
    squash: Annotated[bool, Fixed] = False
    """space the bins evenly after h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x, densest where numbers are small: for
    large returns, as those of 2048"""
    canonical: Annotated[bool, Fixed] = False
    """for kinds observation and fully_convolutional: canonical observations. Where the player to move has the second
    colour, the network sees the position turned by a symmetry that exchanges the colours"""
    chance_codes: Annotated[Annotated[int, Meta(ge=0, le=4096)] | None, Fixed] = None
    """--model learned: codes of what chance did after a move, at least 2; 0: none, as plain MuZero. None: 32 where the
    game lists what chance can do, else 0"""
    predict_discount: Annotated[bool, Fixed] = False
    """predict each move's signed discount: whose turn it is next, and whether the game is over. Always so in games
    whose turns do not alternate"""

    @property
    def imagines_observations(self) -> bool:
        """Whether the network's embeddings are observations; of a network of one's own nothing is known."""
        return self.kind in ("observation", "fully_convolutional") and self.file is None

    @property
    def sees_one_side(self) -> bool:
        """Whether positions are turned for it."""
        return self.canonical and self.imagines_observations


@dataclass(frozen=True)
class AlgorithmConfig:
    """The algorithm itself."""

    file: Annotated[Name | None, Fact(switch=True, common=True, short="--algorithm")] = None
    """Python file that changes the algorithm, in place of MuZero as it is: change(algorithm, config, **options)
    -> Algorithm (docs/your-own-algorithm.md)"""
    options: Annotated[tuple[Option, ...], Fixed] = ()
    """options of that file's change, name=value each; values are Python literals, or else text"""


@dataclass(frozen=True)
class SearchConfig:
    """Tree search in self-play. Evaluation uses the same without noise."""

    policy: Literal["gumbel", "puct"] = "gumbel"
    """gumbel: Gumbel MuZero, which improves with few simulations; puct: MuZero's own, with noise in the root's prior"""
    engine: Literal["own", "passes", "mctx"] = "own"
    """own: one simulation after another; passes: Gumbel's search with all simulations of a round at the same time, for
    accelerators (docs/search.md); mctx: the reference"""
    num_simulations: Annotated[Simulations, Fact(common=True, short="--sims")] = 16
    """simulations for each move of self-play"""
    max_num_considered_actions: Annotated[PositiveInt, Fact(tuned=Range(4, 16, "never varied"))] = 8
    """Gumbel: actions considered at the root; in evaluation more, as the square root of its larger budget"""
    gumbel_scale: NotNegativeFloat = 1.0
    """Gumbel: noise at the root in self-play"""
    value_scale: Annotated[PositiveFloat, Fact(tuned=Range(0.1, 1.0, "0.4; mctx's 0.1 is for rescaled Q"))] = 0.1
    """Gumbel: c_scale of sigma(q)"""
    maxvisit_init: NotNegativeFloat = 50.0
    """Gumbel: c_visit of sigma(q)"""
    rescale_values: bool = False
    """Gumbel: stretch each node's Q to [0, 1] first (mctx's default); early in training this makes noise look like
    knowledge"""
    improved_value: bool = True
    """Gumbel: search_value is the value of the improved policy; if not, the mean of all simulations, which try bad
    moves too"""
    dirichlet_fraction: UnitInterval = 0.25
    """PUCT: share of noise in the root's prior in self-play; drawn over all actions and then masked, as mctx does"""
    dirichlet_alpha: PositiveFloat = 0.3
    """PUCT: concentration of that noise; the smaller, the fewer actions it falls on"""
    pb_c_init: NotNegativeFloat = 1.25
    """PUCT: weight of exploration by the prior, at few visits"""
    pb_c_base: PositiveFloat = 19652.0
    """PUCT: visits of a node at which that weight has grown by log 2"""
    temperature: NotNegativeFloat = 1.0
    """PUCT: temperature of the visit counts in self-play"""


@dataclass(frozen=True)
class SelfPlayConfig:
    """Games at once and how far they go before learning."""

    num_envs: Annotated[PositiveInt, Fixed] = 512
    """games played at once, over all devices"""
    rollout_length: Annotated[PositiveInt, Fixed] = 8
    """moves of each game per iteration"""
    exploration: Annotated[UnitInterval, Fact(member=True, common=True, tuned=RANDOM_MOVES)] = 0.05
    """share of moves drawn uniformly from the legal ones; value targets stop at them (targets.stop-at-exploration)"""
    full_search_share: Annotated[PositiveShare, Fact(switch=True)] = 1.0
    """playout-cap randomisation: share of moves that are searched in full. The others get a cheap search without noise,
    whose policy is not learned from"""
    cheap_simulations: Simulations = 4
    """simulations of a cheap search"""
    sampled_moves: NotNegativeInt | None = None
    """moves at each game's start that are drawn with the search's noise; later ones are the likeliest found. None: all
    drawn"""


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer."""

    replay_length: Annotated[PositiveInt, Fixed] = 512
    """frames stored of each game; a multiple of rollout_length"""
    end_weight: Annotated[PositiveInt, Fact(tuned=Range(1, 8, "4: the dynamics must see a win first"))] = 1
    """how many times likelier a window that contains a game's end is sampled"""
    min_frames: NotNegativeInt = 64
    """frames of each game stored before the first update, and never fewer than one window"""
    symmetries: bool = True
    """turn each window by a random symmetry of the game"""
    reanalyze_fraction: Annotated[UnitInterval | None, Fact(switch=True)] = None
    """share of each batch that is searched again with fresh weights before it is learned from; the buffer keeps what
    that found. None: 0 with self-play, 1 where stored games alone are learned from"""
    priority_exponent: Annotated[UnitInterval, Fact(switch=True)] = 0.0
    """alpha: windows are sampled in proportion to |search value - return| to this power; 0: all alike"""
    importance_exponent: UnitInterval = 1.0
    """beta: how far weights in the losses correct the bias of priorities; 1: fully"""


@dataclass(frozen=True)
class TargetConfig:
    """The targets of a window."""

    unroll_steps: Annotated[PositiveInt, Fact(tuned=Range(2, 6, "4; each step costs time and memory", log=False))] = 5
    """moves that the learned dynamics are unrolled along each window"""
    td_steps: PositiveInt = 32
    """moves before bootstrapping from search; at least the longest game's length is Monte-Carlo"""
    td_lambda: Annotated[UnitInterval, Fact(tuned=Range(0.8, 1.0, "0.95 in Connect Four", log=False))] = 1.0
    """1: n-step return; below 1: TD(lambda) over td_steps moves"""
    stop_at_exploration: bool = True
    """value targets stop at random moves. If not, they are exploratory returns, which run on through random moves: a
    value is then that between players who make as many random moves"""
    search_value_weight: Annotated[UnitInterval, Fact(tuned=SEARCH_VALUE)] = 0.0
    """share of the search's value in a position's value target, the rest being the return; 1: the search's value
    alone"""
    discount: Annotated[PositiveShare, Fixed] = 1.0
    """gamma per move"""


@dataclass(frozen=True)
class OptimiserConfig:
    """Gradient steps."""

    name: Annotated[Literal["adamw", "adafactor", "muon"], Fixed] = "adamw"
    """adafactor: the least memory; muon: half of AdamW's, with orthogonal steps for matrices and kernels, and AdamW for
    the rest. Both want a learning rate some 5 times higher than AdamW"""
    batch_size: PositiveInt = 256
    """windows per update, over all devices"""
    micro_batch_size: PositiveInt | None = None
    """the most windows whose gradient a device computes at once; the largest divisor of its share is taken. It changes
    speed and memory alone. None: all windows; for a tower on a CPU, as many as its cache holds"""
    updates_per_iteration: PositiveInt = 16
    """with num_envs and rollout_length this fixes the replay ratio"""
    learning_rate: Annotated[PositiveFloat, Fact(member=True, common=True, tuned=RATE, short="--lr")] = 1e-3
    """learning rate at its highest, after the warm-up"""
    schedule: Literal["constant", "cosine"] = "constant"
    """cosine: falls to a tenth of its peak by the end of the budget"""
    warmup_updates: NotNegativeInt = 100
    """updates in which the learning rate rises from 0"""
    weight_decay: Annotated[NotNegativeFloat, Fact(member=True, tuned=Range(1e-5, 1e-2, "never varied"))] = 1e-4
    """decoupled weight decay, of matrices only, not of biases and norms"""
    max_gradient_norm: Annotated[float, Meta(gt=0), Fact(member=True)] = 5.0
    """gradients with a larger global norm are scaled down to it"""
    reward_weight: Annotated[NotNegativeFloat, Fact(tuned=Range(0.5, 8.0, "3: only a last move has a reward"))] = 1.0
    """weight of the reward's loss"""
    value_weight: NotNegativeFloat = 1.0
    """weight of the value's loss"""
    policy_weight: Annotated[NotNegativeFloat, Fact(tuned=Range(0.5, 2.0, "never varied"))] = 1.0
    """weight of the policy's loss"""
    reconstruction_weight: Annotated[NotNegativeFloat, Fact(tuned=Range(2.0, 40.0, "10; 0 learned no rules"))] = 0.0
    """weight of an auxiliary loss: every unrolled embedding must predict its observation, to learn rules sooner"""
    checkpoint_unroll: bool = False
    """compute unrolled steps twice instead of keeping all of them for the gradient: less memory, more time"""
    legality_weight: PositiveFloat = 1.0
    """weight of the legal moves' loss, with --model learned_legality"""
    discount_weight: PositiveFloat = 1.0
    """weight of the discount's loss, where the network predicts it"""
    chance_weight: PositiveFloat = 1.0
    """weight of the loss of what chance will do, where the model has codes of it"""
    commitment_weight: NotNegativeFloat = 0.01
    """weight of the loss that draws the encoder of chance to the code that it chose; with 0.25 it may settle for one
    code before it has told two outcomes apart"""
    consistency_weight: Annotated[NotNegativeFloat, Fact(switch=True)] = 0.0
    """weight of EfficientZero's auxiliary loss: imagined embeddings must resemble those of the real observations"""
    target_period: Annotated[PositiveInt | None, Fact(switch=True)] = None
    """updates after which a target network becomes a copy of the other; Reanalyze then searches with it"""
    target_decay: Annotated[Annotated[float, Meta(gt=0, lt=1)] | None, Fact(switch=True)] = None
    """the target network is instead a moving average that keeps this share of itself in every update, say 0.995"""


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches played while training, without noise and with varied openings."""

    interval_minutes: Annotated[NotNegativeFloat, Fact(common=True)] = 1.0
    """minutes between evaluations; 0 evaluates at the end only"""
    parts: PositiveInt | None = None
    """evaluate after each of so many equal parts of the budget, instead of by the clock. Then runs with the same frames
    are measured at the same places, also those that wait until their matches are compiled"""
    games: Games = 128
    """games of each match, half of them with each colour"""
    final_games: Games = 256
    """games of each match at the end of the run"""
    opening_plies: NotNegativeInt = 2
    """uniformly random moves before each game; every opening is played with both colours"""
    num_simulations: Annotated[Simulations, Fact(common=True)] = 64
    """search budget of the agent"""
    mcts_simulations: tuple[Simulations, ...] = (100, 1000)
    """budgets of the rollout MCTS opponents; those above 100 play at the end only"""

    @property
    def while_training(self) -> bool:
        """Whether a run is evaluated before its end."""
        return self.interval_minutes > 0 or self.parts is not None
