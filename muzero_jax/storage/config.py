"""Every choice of a run, as nested frozen dataclasses: hashable, checked once, written to `config.json` and read back.

Each field is a flag `--group.field` of `experiments/train.py`. Only `training` turns these into functions; no algorithm
ever sees a config.
"""

import dataclasses
import json
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from muzero_jax.storage.files import write_whole
from muzero_jax.storage.validation import validate


@dataclass(frozen=True)
class NetworkConfig:
    """The learned model."""

    kind: Literal["mlp", "observation", "tower"] = "mlp"
    """mlp: dense layers; observation: MLPs that imagine the next observation, for small boards; tower: convolutions"""
    width: int = 128
    """units of the MLPs or channels of the tower"""
    num_blocks: int = 1
    """residual blocks of representation, of dynamics and of prediction, each"""
    activation: Literal["relu", "silu", "gelu"] = "relu"
    compute_dtype: Literal["auto", "float32", "bfloat16", "bfloat16_products", "float16"] = "auto"
    """arithmetic of the networks; auto: bfloat16 on TPUs and on GPUs from compute capability 8 on, bfloat16_products
    on CPUs with AMX, else float32. bfloat16_products, for such CPUs: float32, but what the trunks multiply (of towers:
    convolutions of 32 channels and more) is rounded to bfloat16. float16, with a scaled loss, is for a T4. Parameters
    are float32 always"""
    num_bins: int = 21
    """bins of the categorical value and reward over [-1, 1]; 1 makes the heads scalar"""


@dataclass(frozen=True)
class SearchConfig:
    """Tree search in self-play. Evaluation uses the same without noise."""

    policy: Literal["gumbel", "puct"] = "gumbel"
    engine: Literal["own", "loop_free", "mctx"] = "own"
    """loop_free: the same trees up to 16 moves deep, meant for accelerators, slower on a CPU; mctx: the reference"""
    max_children: int | None = None
    """actions that a node has room for, at least 2, the likeliest; default: all. Less memory on large boards, but
    another search, which considers no more than these"""
    num_simulations: int = 16
    max_num_considered_actions: int = 8
    """Gumbel: actions considered at the root; in evaluation more, as the square root of its larger budget"""
    gumbel_scale: float = 1.0
    """Gumbel: noise at the root in self-play"""
    value_scale: float = 0.1
    """Gumbel: c_scale of sigma(q)"""
    maxvisit_init: float = 50.0
    """Gumbel: c_visit of sigma(q)"""
    rescale_values: bool = False
    """Gumbel: stretch each node's Q to [0, 1] first (mctx's default); noise then looks like knowledge early on"""
    improved_value: bool = True
    """Gumbel: search_value is the improved policy's; else the mean of all simulations, many of them of bad moves"""
    dirichlet_fraction: float = 0.25
    """PUCT: share of noise in the root's prior in self-play; drawn over all actions and then masked, as mctx does"""
    dirichlet_alpha: float = 0.3
    pb_c_init: float = 1.25
    pb_c_base: float = 19652.0
    temperature: float = 1.0
    """PUCT: of the visit counts in self-play"""


@dataclass(frozen=True)
class SelfPlayConfig:
    """Games at once and how far they go before learning."""

    num_envs: int = 512
    """games played at once, over all devices"""
    rollout_length: int = 8
    """moves of each game per iteration"""
    exploration: float = 0.05
    """share of moves drawn uniformly from the legal ones; value targets stop at them (targets.stop-at-exploration)"""


@dataclass(frozen=True)
class ReplayConfig:
    """The replay ring."""

    replay_length: int = 512
    """frames kept of each game; a multiple of rollout_length"""
    end_weight: int = 1
    """how much likelier a window that contains a game's end is drawn"""
    min_frames: int = 64
    """frames of each game stored before the first update, and never fewer than one window"""
    symmetries: bool = True
    """turn each window by a random symmetry of the game"""
    reanalyze_fraction: float = 0.0
    """share of each batch that is searched again, at every frame, with fresh weights before it is learned from"""


@dataclass(frozen=True)
class TargetConfig:
    """What is learned from a window."""

    unroll_steps: int = 5
    td_steps: int = 32
    """moves before bootstrapping from search; at least the longest game's length is Monte-Carlo"""
    td_lambda: float = 1.0
    """1: n-step return; below: TD(lambda) over td_steps moves"""
    stop_at_exploration: bool = True
    """value targets stop at random moves; if not, a position is worth what it is among players who err so often"""
    discount: float = 1.0
    """gamma per move"""


@dataclass(frozen=True)
class OptimiserConfig:
    """Gradient steps."""

    batch_size: int = 256
    """windows per update, over all devices"""
    micro_batch_size: int | None = None
    """windows whose gradient is computed at once, at most, of each device; a divisor of its share of the batch is
    taken. Only speed and memory change. None: all, but for a tower on a CPU what its cache holds"""
    updates_per_iteration: int = 16
    """with num_envs and rollout_length this fixes the replay ratio"""
    learning_rate: float = 1e-3
    schedule: Literal["constant", "cosine"] = "constant"
    """cosine decays to a tenth over decay_updates"""
    warmup_updates: int = 100
    decay_updates: int = 50_000
    """presets choose what their minutes hold on two CPU cores; raise it for longer runs and faster machines"""
    weight_decay: float = 1e-4
    max_gradient_norm: float = 5.0
    reward_weight: float = 1.0
    value_weight: float = 1.0
    policy_weight: float = 1.0
    reconstruction_weight: float = 0.0
    """of an auxiliary loss: every unrolled embedding must tell its observation, which teaches the rules sooner"""
    checkpoint_unroll: bool = False
    """compute unrolled steps twice instead of keeping all of them for the gradient: less memory, more time"""


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches played while training, without noise and with varied openings."""

    interval_minutes: float = 1.0
    """minutes between evaluations; 0 evaluates at the end only"""
    games: int = 128
    """games of each match, half of them with each colour"""
    final_games: int = 256
    opening_plies: int = 2
    """uniformly random moves before each game; every opening is played with both colours"""
    num_simulations: int = 64
    """search budget of the agent"""
    mcts_simulations: tuple[int, ...] = (100, 1000)
    """budgets of the rollout MCTS opponents; those above 100 play at the end only"""


@dataclass(frozen=True)
class Config:
    """One training run."""

    env: str = "hex"
    """the game; see experiments/presets.py"""
    board_size: int | None = None
    """Hex only: 2 to 19; by default the largest that this machine learns in a sitting"""
    minutes: float = 5.0
    """wall-clock budget of training, compilation and evaluation during training included"""
    max_iterations: int | None = None
    """stop after this many iterations instead, if that comes first; rounded up to whole chunks"""
    seed: int = 0
    """of everything random, 0 to 2^32 - 1; a resumed run keeps its own"""
    run_dir: str | None = None
    """default: runs/<env>-<size>-seed<seed>"""
    resume: bool = False
    """go on from the newest checkpoint of run_dir; bit for bit on the same kind and number of devices (tested on CPUs;
    on a GPU the last bits of sums may differ)"""
    overwrite: bool = False
    """delete an existing run_dir first"""
    device: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """what to run on; auto: the best that JAX finds"""
    devices: int | None = None
    """devices to use; default: every CPU core, or every accelerator"""
    autotune: bool = False
    """first find the num_envs, rollout_length and batch_size with most frames/s here, at the same replay ratio"""
    autotune_minutes: float = 3.0
    """time for that, on top of minutes; sizes begun are measured to the end; a result is kept and found again"""
    iterations_per_chunk: int = 2
    """iterations that one compiled call runs; progress is shown and Ctrl-C heeded between chunks. On several CPU
    devices XLA's memory grows with it"""
    checkpoint_minutes: float = 2.0
    """minutes between checkpoints; one is saved at every evaluation and at the end too, and with 0 only then"""
    tensorboard: bool = True
    wandb: bool = False
    profile: bool = False
    """trace a few chunks, once learning has begun, into run_dir/profile; docs/performance.md tells how to read it"""
    compilation_cache: str | None = None
    """folder for XLA's persistent compilation cache (opt-in)"""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    targets: TargetConfig = field(default_factory=TargetConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def window_length(self) -> int:
        """L = K + n + 1, the frames that a window needs."""
        return self.targets.unroll_steps + self.targets.td_steps + 1

    @property
    def frames_to_learn(self) -> int:
        """Frames of each game that the ring holds before the first update."""
        return max(self.replay.min_frames, self.window_length)

    @property
    def iterations_to_learn(self) -> int:
        """The iteration that makes the first update, counted from 1."""
        return -(-self.frames_to_learn // self.self_play.rollout_length)

    @property
    def shared_sizes(self) -> tuple[int, int]:
        """What the devices share evenly: games, and windows of a batch."""
        return self.self_play.num_envs, self.optimiser.batch_size


FILE = "config.json"
"""In a run's folder; its presence says that the folder holds a run."""


def describe(config: Config) -> str:
    """The config for a person: one line a group."""
    groups = {"run": {}} | {
        name: value for name, value in dataclasses.asdict(config).items() if isinstance(value, dict)
    }
    groups["run"] = {name: value for name, value in dataclasses.asdict(config).items() if name not in groups}
    return "\n".join(
        f"{group:<11}" + " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        for group, fields in groups.items()
    )


def to_json(config: Config) -> str:
    """The config as JSON text."""
    return json.dumps(dataclasses.asdict(config), indent=2)


def from_json(text: str) -> Config:
    """The inverse of `to_json`; ValueError names a key that this version doesn't know."""
    return _build(Config, json.loads(text))


def save(config: Config, run_dir: Path) -> None:
    """Writes a run's `config.json`; it then counts as a run."""
    write_whole(run_dir / FILE, to_json(config))


def load(run_dir: Path) -> Config:
    """The config that a run was made with; ValueError if the folder holds no run, or not one of ours."""
    file = run_dir / FILE
    if not file.is_file():
        raise ValueError(f"{run_dir} holds no run (there is no {file}); train one with experiments/train.py")
    try:
        return validate(from_json(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{file} is not a config of ours: {error}") from error


def _build(cls: type, values: Any) -> Any:
    if not isinstance(values, dict):
        raise ValueError(f"config.json holds {values!r} where it should hold the fields of {cls.__name__}")
    types = typing.get_type_hints(cls)
    unknown = sorted(set(values) - set(types))
    if unknown:
        raise ValueError(f"config.json has a field {unknown[0]!r} that this version of muzero_jax does not know")
    arguments = {}
    for name, value in values.items():
        if dataclasses.is_dataclass(types[name]):
            arguments[name] = _build(types[name], value)
            continue
        value = tuple(value) if isinstance(value, list) else value
        if not _fits(value, types[name]):
            raise ValueError(f"{name} is {value!r}, but must be {types[name]}")
        arguments[name] = value
    return cls(**arguments)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is of the annotated type; an int is a float too, a bool is no number."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return value in options
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, options[0]) for item in value)
    if options:  # a union
        return any(_fits(value, option) for option in options)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)
