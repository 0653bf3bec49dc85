"""The groups of a config: network, algorithm, search, self-play, replay, targets, optimiser and evaluation.

Each field is a flag `--group.field` of `experiments/train.py`: its range is in the annotation, its help below.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from muzero_jax.config.fields import (
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

Games = Annotated[int, Meta(ge=1, lt=2**31, multiple_of=2, description="a positive even integer")]
"""Even, because every opening is played with both colours."""
BoardSize = Annotated[int, Meta(ge=2, le=19)]
Option = Annotated[str, Meta(pattern=r"^[^\W\d]\w*=", description="name=value")]
RATE = Range(
    0.25, 4.0, "2e-3 with batches of 512: 70%, smaller ones 49%; Muon needs some 5 times more", is_relative=True
)
RANDOM_MOVES = Range(1 / 3, 3.0, "two random moves a game beat one on Hex 5x5", is_relative=True, most=0.5)
SEARCH_VALUE = Range(0.0, 0.5, "0.25 scored 80% and 0 84% on Hex 5x5, without canonical", log=False)
VALUE_SCALE = Range(0.1, 1.0, "0.4; mctx's 0.1 is for rescaled Q", policy="gumbel")
KL = Range(0.25, 4.0, "0.2 and 0.5 in hidden games", is_relative=True, policy="none")
ENTROPY = Range(0.25, 4.0, "0.015 in hidden games", is_relative=True, policy="none")
UNROLLED = Range(2, 6, "4; each step costs time and memory", log=False, of_dynamics=True)
REWARDS = Range(0.5, 8.0, "3: only a last move has a reward", of_dynamics=True)
RECONSTRUCTION = Range(2.0, 40.0, "10; 0 learned no rules", of_dynamics=True)
Kind = Literal["mlp", "observation", "tower", "attention", "fully_convolutional", "pixels"]
Fixed = Fact(fixed=True)
BuiltIn = Fact(fixed=True, built_in=True)


@dataclass(frozen=True)
class NetworkConfig:
    """The learned model."""

    kind: Annotated[Kind, BuiltIn] = "mlp"
    """mlp: dense layers; observation: MLPs that predict the next observation, for small boards; tower: convolutions;
    attention: a transformer over the board's cells; fully_convolutional: convolutions that predict the next
    observation, with the same weights for every board size; pixels: convolutions that shrink a screen to a few cells"""
    file: Annotated[Name | None, Fact(common=True, short="--network")] = None
    """Python file with a network of your own instead of `kind`. It defines make_model(environment, support, **options)
    -> Model (docs/your-own-network.md)"""
    options: Annotated[tuple[Option, ...], Fixed] = ()
    """options for make_model in the --network file: name=value each; values: Python literals if possible, else text"""
    width: Annotated[int, Meta(ge=1, le=65_536), BuiltIn._replace(common=True)] = 128
    """units of MLPs, channels of convolutions, or numbers in a cell's token; attention has one head per 32 of these"""
    num_blocks: Annotated[int, Meta(ge=0, le=1_000), BuiltIn] = 1
    """residual blocks in each of representation, dynamics and prediction; observation and fully_convolutional have
    twice as many in the prediction and no representation, pixels only those of the dynamics"""
    activation: Annotated[Literal["relu", "silu", "gelu"], BuiltIn] = "relu"
    """nonlinearity after each layer"""
    compute_dtype: Literal["auto", "float32", "bfloat16", "bfloat16_products", "float16"] = "auto"
    """precision of the networks; auto: bfloat16 on TPUs and on GPUs from compute capability 8 on, bfloat16_products on
    CPUs with AMX, else float32. bfloat16_products: float32, but the trunks' layers (in towers: convolutions with 32
    channels or more) round the factors of their products to bfloat16. float16: for a T4, with a scaled loss; not timed
    on an accelerator. Parameters are always float32"""
    num_bins: Annotated[int, Meta(ge=1, le=100_000), Fixed] = 21
    """bins of the categorical value and reward, from -support-range to support-range; 1 makes the heads scalar"""
    support_range: Annotated[PositiveFloat, Fixed] = 1.0
    """largest absolute value or reward that the heads can represent; 1 for games that are won or lost"""
    squash: Annotated[bool, Fixed] = False
    """for large returns, such as those of 2048: space the bins evenly in h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x,
    so that they are densest near 0"""
    canonical: Annotated[bool, Fixed] = False
    """canonical observations, for kinds observation and fully_convolutional: if the player to move has the second
    colour, the network sees the position after a symmetry that exchanges the colours"""
    chance_codes: Annotated[Annotated[int, Meta(ge=0, le=4096)] | None, Fixed] = None
    """with --model learned: number of codes for what chance did after a move, one of which says that the game is over,
    at least 2; 0: plain MuZero, without codes. None: 32 if the game lists its chance outcomes, else 0"""
    predict_discount: Annotated[bool, Fixed] = False
    """predict each move's signed discount: whose turn is next, and whether the game is over. Always on in games whose
    turns do not alternate"""

    @property
    def imagines_observations(self) -> bool:
        """Whether the network's embeddings are predicted observations; False for a network of the user's own."""
        return self.kind in ("observation", "fully_convolutional") and self.file is None

    @property
    def is_canonical(self) -> bool:
        """Whether the network sees canonical observations."""
        return self.canonical and self.imagines_observations


IN_PYTHON = ("in Python",)
"""`AlgorithmConfig.files` of a run whose algorithm was a Python record, so that no other is built silently."""


@dataclass(frozen=True)
class AlgorithmConfig:
    """A change of the algorithm, in a file of your own."""

    files: Annotated[tuple[Name, ...], Fact(switch=True, common=True, short="--algorithm", needs_value=True)] = ()
    """Python files that change the algorithm, one after another. Each defines change(algorithm, config, **options) ->
    Algorithm (docs/your-own-algorithm.md)"""
    options: Annotated[tuple[Option, ...], Fixed] = ()
    """options for change in the --algorithm files: name=value each; values: Python literals if possible, else text.
    Each goes to every file that has a parameter of that name"""

    @property
    def is_record(self) -> bool:
        """Whether a program gave the algorithm, so that no file can build it."""
        return self.files == IN_PYTHON

    @property
    def own_files(self) -> tuple[str, ...]:
        """The files that build it."""
        return () if self.is_record else self.files


@dataclass(frozen=True)
class SearchConfig:
    """Tree search in self-play. Evaluation uses the same search without noise."""

    policy: Annotated[Literal["gumbel", "puct", "none"], Fixed._replace(common=False)] = "gumbel"
    """gumbel: Gumbel MuZero, for few simulations; puct: the MuZero paper's search, with noise in the root's prior;
    none: self-play without a search, where predicted values of the actions improve the policy (docs/search-free.md);
    evaluation and play then use Gumbel's search, or with --model none the policy head"""
    engine: Literal["own", "passes", "mctx"] = "own"
    """own: one simulation after another; passes: Gumbel's search with all simulations of a round at the same time, for
    accelerators (PUCT, more than 256 simulations, and the ground-truth model of a game that lists its chance use own
    instead); mctx: the mctx library, for reference (docs/search.md)"""
    num_simulations: Annotated[Simulations, Fact(common=True, short="--sims")] = 16
    """simulations for each move of self-play"""
    max_num_considered_actions: Annotated[PositiveInt, Fact(tuned=Range(4, 16, "never varied", policy="gumbel"))] = 8
    """Gumbel: actions considered at the root in self-play; sqrt(r) times as many for r > 1 times the simulations"""
    gumbel_scale: NotNegativeFloat = 1.0
    """Gumbel: scale of the noise at the root in self-play"""
    value_scale: Annotated[PositiveFloat, Fact(tuned=VALUE_SCALE)] = 0.1
    """Gumbel: c_scale in sigma(q) = (c_visit + most visits) c_scale q, which weighs Q against the prior"""
    maxvisit_init: NotNegativeFloat = 50.0
    """Gumbel: c_visit in sigma(q), see value-scale"""
    rescale_values: bool = False
    """Gumbel: stretch each node's Q to [0, 1] first (mctx's default); early in training this magnifies noise"""
    improved_value: bool = True
    """Gumbel: the search's value is that of the improved policy; if off, it is the mean of all simulations, including
    those of bad moves"""
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
    kl_weight: Annotated[NotNegativeFloat, Fact(tuned=KL)] = 0.1
    """none: weight of the KL divergence from the policy head, which keeps each improvement small; like entropy_weight
    beside values in shares of support_range"""
    entropy_weight: Annotated[PositiveFloat, Fact(tuned=ENTROPY)] = 0.03
    """none: weight of the entropy, which keeps the policy mixed"""


@dataclass(frozen=True)
class SelfPlayConfig:
    """Self-play: how many games, how far in an iteration, and with which exploration."""

    num_envs: Annotated[PositiveInt, Fixed] = 512
    """games played at once, on all devices together"""
    rollout_length: Annotated[PositiveInt, Fixed] = 8
    """moves of each game in an iteration"""
    exploration: Annotated[UnitInterval, Fact(common=True, tuned=RANDOM_MOVES)] = 0.05
    """share of uniformly random moves; by default, value targets stop at them (targets.stop-at-exploration)"""
    full_search_share: Annotated[PositiveShare, Fact(switch=True)] = 1.0
    """playout-cap randomisation: share of moves with a full search. The others get a cheap search without noise, whose
    policy is not learned"""
    cheap_simulations: Simulations = 4
    """simulations of a cheap search, see full-search-share"""
    starts: Annotated[Literal["beginning", "random", "archive", "regret"], Fact(fixed=True, common=True)] = "beginning"
    """where games of self-play begin. random: after up to start_moves random moves; archive: at positions that earlier
    games visited (Go-Exploit); regret: at those of them where the network expects to be most wrong (RGSC)"""
    start_share: PositiveShare = 0.5
    """share of the games that begin so; all others begin at the beginning"""
    start_moves: PositiveInt = 12
    """starts random: the most random moves; their number is uniform from 0 to this"""
    start_slots: Annotated[PositiveInt, Fixed] = 16
    """starts archive and regret: how many positions are stored of each game in progress"""
    sampled_moves: NotNegativeInt | None = None
    """number of moves at the start of a game that are chosen with the search's noise; after them, the move that the
    search found most likely is played. None: all moves are chosen with noise"""


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer."""

    replay_length: Annotated[PositiveInt, Fixed] = 512
    """frames that the buffer stores of each game; a multiple of rollout_length"""
    end_weight: Annotated[PositiveInt, Fact(tuned=Range(1, 8, "4: the dynamics must see a win first"))] = 1
    """how many times as often a window that contains the end of a game is sampled, if a model is learned"""
    min_frames: NotNegativeInt = 64
    """frames of each game that must be stored before the first update; at least one window"""
    symmetries: bool = True
    """transform each window by a random symmetry of the game"""
    reanalyze_fraction: Annotated[UnitInterval | None, Fact(switch=True)] = None
    """Reanalyze: share of each batch that is searched again with fresh weights before the update; the buffer keeps the
    results. None: 0 with self-play, 1 with --offline"""
    priority_exponent: Annotated[UnitInterval, Fact(switch=True)] = 0.0
    """prioritised replay: windows are sampled in proportion to |search value - return| to this power; 0: uniformly"""
    importance_exponent: UnitInterval = 1.0
    """prioritised replay: how far weights in the losses correct the bias of this sampling; 1: fully"""


@dataclass(frozen=True)
class TargetConfig:
    """The targets of a window."""

    unroll_steps: Annotated[PositiveInt, Fact(tuned=UNROLLED)] = 5
    """number of moves for which the learned dynamics are unrolled along each window"""
    td_steps: PositiveInt = 32
    """moves of the return before the search's value replaces the rest; if no game is longer: only the outcome"""
    td_lambda: Annotated[UnitInterval, Fact(tuned=Range(0.8, 1.0, "0.95 in Connect Four", log=False))] = 1.0
    """1: n-step return; below 1: TD(lambda) over td_steps moves"""
    stop_at_exploration: bool = True
    """value targets stop at random moves. If off, they are exploratory returns, which continue through random moves, so
    that a value assumes players who make as many random moves (docs/values.md)"""
    search_value_weight: Annotated[UnitInterval, Fact(tuned=SEARCH_VALUE)] = 0.0
    """share of the search's value in a position's value target; the rest is the return. 1: only the search's value"""
    discount: Annotated[PositiveShare, Fixed] = 1.0
    """discount gamma per move"""


@dataclass(frozen=True)
class OptimiserConfig:
    """Gradient steps."""

    name: Annotated[Literal["adamw", "adafactor", "muon", "sgd"], Fixed] = "adamw"
    """adafactor: uses the least memory; muon: half of AdamW's memory, with orthogonal steps for matrices and kernels
    and AdamW for the rest. Both need a learning rate about 5 times as high as AdamW. sgd: with momentum 0.9, 30 times
    as high, for games with hidden information"""
    batch_size: PositiveInt = 256
    """windows per update, on all devices together"""
    micro_batch_size: PositiveInt | None = None
    """most windows whose gradient a device computes at once (the largest divisor of its share). It only changes speed
    and memory. None: all windows; for tower and fully_convolutional on a CPU, as many as fit into its cache"""
    updates_per_iteration: PositiveInt = 16
    """gradient steps per iteration; with num_envs and rollout_length they determine the replay ratio"""
    learning_rate: Annotated[PositiveFloat, Fact(common=True, tuned=RATE, short="--lr")] = 1e-3
    """peak learning rate, after the warm-up"""
    schedule: Literal["constant", "cosine"] = "constant"
    """cosine: the learning rate falls to a tenth of its peak by the end of the budget"""
    warmup_updates: NotNegativeInt = 100
    """updates during which the learning rate rises from 0"""
    weight_decay: Annotated[NotNegativeFloat, Fact(tuned=Range(1e-5, 1e-2, "never varied"))] = 1e-4
    """decoupled weight decay; only for matrices, not for biases and norms"""
    max_gradient_norm: Annotated[float, Meta(gt=0)] = 5.0
    """gradients with a larger global norm are scaled down to it"""
    reward_weight: Annotated[NotNegativeFloat, Fact(tuned=REWARDS)] = 1.0
    """weight of the reward loss"""
    value_weight: NotNegativeFloat = 1.0
    """weight of the value loss"""
    policy_weight: Annotated[NotNegativeFloat, Fact(tuned=Range(0.5, 2.0, "never varied"))] = 1.0
    """weight of the policy loss"""
    reconstruction_weight: Annotated[NotNegativeFloat, Fact(tuned=RECONSTRUCTION)] = 0.0
    """weight of the reconstruction loss: every unrolled embedding must predict its observation (docs/model.md)"""
    checkpoint_unroll: bool = False
    """compute the unrolled steps again for the gradient instead of storing them: less memory, more time"""
    legality_weight: PositiveFloat = 1.0
    """weight of the loss of predicted legal moves, with --model learned_legality"""
    discount_weight: PositiveFloat = 1.0
    """weight of the discount loss, if the network predicts discounts"""
    action_value_weight: PositiveFloat = 1.0
    """weight of the loss of the actions' values, with --search.policy none"""
    advantage_weight: NotNegativeFloat = 0.0
    """none: weight of a policy gradient by how far a return was from the predicted value of the action that was played;
    equal to policy_weight it makes up for what the predictions miss (docs/search-free.md)"""
    chance_weight: PositiveFloat = 1.0
    """weight of the loss of predicted chance, if the model has codes for it"""
    commitment_weight: NotNegativeFloat = 0.01
    """weight of the loss that pulls the encoder of chance towards the code that it chose; if large (0.25), the encoder
    may settle for one code before it tells two outcomes apart"""
    consistency_weight: Annotated[NotNegativeFloat, Fact(switch=True)] = 0.0
    """weight of EfficientZero's consistency loss: unrolled embeddings must resemble those of real observations. It
    standardises over a device's share of the batch"""
    target_period: Annotated[PositiveInt | None, Fact(switch=True)] = None
    """number of updates after which the target network becomes a copy of the network; Reanalyze searches with it"""
    target_decay: Annotated[Annotated[float, Meta(gt=0, lt=1)] | None, Fact(switch=True)] = None
    """instead of target-period: share, say 0.995, that the target network, a moving average, keeps in each update"""
    average_decay: Annotated[Annotated[float, Meta(gt=0, lt=1)] | None, Fact(switch=True)] = None
    """share, say 0.999, that a moving average of the weights keeps in each update; then the average is the agent that
    is evaluated and plays, while self-play uses the newest weights"""


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches during training, without noise and with varied openings."""

    interval_minutes: Annotated[NotNegativeFloat, Fact(common=True)] = 1.0
    """minutes between evaluations; 0: only at the end"""
    parts: PositiveInt | None = None
    """evaluate after each of this many equal parts of the budget instead of by the clock, so that runs with the same
    budget in frames are evaluated at the same frames"""
    games: Games = 128
    """games in each match, half of them with each colour"""
    final_games: Games = 256
    """games in each match at the end of the run"""
    opening_plies: NotNegativeInt = 2
    """number of random moves before each game; every opening is played with both colours"""
    num_simulations: Annotated[Simulations, Fact(common=True)] = 64
    """the agent's simulations per move in evaluations"""
    mcts_simulations: tuple[Simulations, ...] = (100, 1000)
    """simulations of the rollout MCTS opponents; those above 100 play only at the end, and the largest sets the
    memory of all evaluations"""

    @property
    def while_training(self) -> bool:
        """Whether a run is evaluated before its end."""
        return self.interval_minutes > 0 or self.parts is not None
