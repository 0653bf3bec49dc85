"""All settings of a run, as nested frozen dataclasses that are hashable and saved in `config.json`.

Each field is a flag `--group.field` of `experiments/train.py`: its range is in the annotation, its help below. Options
of a single call of that command are fields of `session.Session`. Search, learning and networks never see a config.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from muzero_jax.config.fields import Fact, Name, PositiveFloat, PositiveInt, Seed, fields_of, value_at
from muzero_jax.config.groups import (
    IN_PYTHON,
    AlgorithmConfig,
    BoardSize,
    EvaluationConfig,
    NetworkConfig,
    OptimiserConfig,
    ReplayConfig,
    SearchConfig,
    SelfPlayConfig,
    TargetConfig,
)
from muzero_jax.own import python_file

Budget = Fact(budget=True, common=True)
Fixed = Fact(fixed=True, common=True)


@dataclass(frozen=True)
class Config:
    """One training run."""

    env: Annotated[str, Fixed] = "hex"
    """the game: a name, or the path of a Python file that defines make() (docs/your-own-game.md)"""
    board_size: Annotated[int | None, Fixed] = None
    """Hex: 2 to 19, by default the largest that this machine learns in one session; dark Hex: 2 to 5, by default 3;
    go_9x9: 5 to 19, by default 9"""
    board_sizes: Annotated[tuple[BoardSize, ...], Fixed._replace(common=False)] = ()
    """Hex and go_9x9: several boards in one run, in alternating chunks; a size that is given twice gets twice as many.
    Matches are played on board_size, by default the largest of them (docs/larger-boards.md)"""
    minutes: Annotated[PositiveFloat | None, Budget] = 5.0
    """budget: minutes of training, including evaluations during it, but not compiling and the final matches. On
    the command line the default applies only if no other budget is given; in Python, None with another one"""
    frames: Annotated[PositiveInt | None, Budget] = None
    """budget: moves of self-play, in all games together"""
    updates: Annotated[PositiveInt | None, Budget] = None
    """budget: gradient steps. With several budgets, the first to be spent ends the run, after a whole chunk"""
    flops: Annotated[PositiveFloat | None, Fact(budget=True)] = None
    """budget: floating-point operations of the network, in self-play and learning together, such as 3.7e12: the fair
    measure of cost between algorithms (docs/evaluate.md)"""
    max_iterations: Annotated[PositiveInt | None, Fact(budget=True)] = None
    """budget: iterations"""
    offline: Annotated[Name | None, Fixed] = None
    """learn only from stored games: the folder of a run, or a file or folder of games (docs/offline.md)"""
    init_from: Annotated[Name | None, Fixed] = None
    """begin with the network and weights of another run (its folder, or one of its versions) or of an agent
    (agent:NAME); everything else is new (docs/resume.md)"""
    model: Annotated[Literal["learned", "learned_outcomes", "rules", "learned_legality", "none"], Fixed] = "learned"
    """the model that the search uses. learned: MuZero, or Stochastic MuZero if the game has chance; learned_outcomes:
    the same with known chance outcomes; learned_legality: MuZero that also predicts the legal moves, without codes of
    chance; rules: AlphaZero, which uses the ground-truth model, the rules of the game, and so sees what a game hides
    from its player; none: the policy head plays, and nothing searches (with --search.policy none). With rules or none,
    options of the dynamics have no effect"""
    seed: Annotated[Seed, Fact(fixed=True, own=True, common=True)] = 0
    """seed of all random numbers, 0 to 2^32 - 1; a resumed run keeps its seed"""
    iterations_per_chunk: PositiveInt = 2
    """iterations in one compiled call (a chunk); between chunks, progress is shown and Ctrl-C takes effect. On several
    CPU devices, more iterations need more memory"""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    targets: TargetConfig = field(default_factory=TargetConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def env_name(self) -> str:
        """The game's name, for people and folders; if it is a file, the file's stem."""
        return Path(self.env).stem if python_file.is_path(self.env) else self.env

    @property
    def window_length(self) -> int:
        """L = K + n + 1, the frames of a window (n is `td_steps`)."""
        return self.unroll_steps + self.targets.td_steps + 1

    @property
    def unroll_steps(self) -> int:
        """K, the unrolled steps of the dynamics; 0 if none are learned."""
        return self.targets.unroll_steps if self.learns_dynamics else 0

    @property
    def learns_dynamics(self) -> bool:
        """Whether the network learns a model of the game, with which positions can be unrolled."""
        return self.model not in ("rules", "none")

    @property
    def compares_embeddings(self) -> bool:
        """Whether imagined embeddings are compared with those of real positions (the consistency loss)."""
        return self.learns_dynamics and self.optimiser.consistency_weight > 0

    @property
    def reanalyze_fraction(self) -> float:
        """Share of each batch that is searched again; offline by default all (Schrittwieser et al. 2021, section 3)."""
        share = self.replay.reanalyze_fraction
        return float(self.offline is not None) if share is None else share

    @property
    def keeps_states(self) -> bool:
        """Whether the buffer has the states of games, because Reanalyze searches with the ground-truth model."""
        return self.model == "rules" and self.reanalyze_fraction > 0

    @property
    def frames_to_learn(self) -> int:
        """Frames of each game that the buffer holds before the first update."""
        return max(self.replay.min_frames, self.window_length)

    @property
    def iterations_to_learn(self) -> int:
        """The iteration with the first update, counted from 1; with several boards, about when all of them learn."""
        rollouts = -(-self.frames_to_learn // self.self_play.rollout_length)
        return 1 if self.offline else rollouts * max(1, len(self.boards))

    @property
    def boards(self) -> list[int]:
        """The distinct sizes of all boards of the run, ascending; empty for a game of one size."""
        return sorted({size for size in (*self.board_sizes, self.board_size) if size})

    @property
    def shared_sizes(self) -> tuple[int, int]:
        """The sizes that devices must share evenly: games, and windows of a batch."""
        return self.self_play.num_envs, self.optimiser.batch_size

    @property
    def own_files(self) -> dict[str, str]:
        """The Python files of the user's own game, network and algorithm, each with the dotted name of its field.

        They run when a game, network or algorithm is built from the config.
        """
        files = {}
        if python_file.is_path(self.env):
            files[self.env] = "env"
        if self.network.file:
            files[self.network.file] = "network.file"
        return files | {file: "algorithm.files" for file in self.algorithm.own_files}

    @property
    def sources(self) -> tuple[str, ...]:
        """The other runs or files from which a new run reads games or weights; a resumed run does not need them."""
        return tuple(source for source in (self.offline, self.init_from) if source)


AGENT_PREFIX = "agent:"
"""The prefix that distinguishes an agent's name from a run's folder."""


def with_record(config: Config) -> Config:
    """The config of a run whose algorithm is a Python record, marked so that no other is built silently."""
    return dataclasses.replace(config, algorithm=AlgorithmConfig(files=IN_PYTHON))


def without_record(config: Config) -> Config:
    """The config with plain MuZero instead of an algorithm that was a Python record."""
    return dataclasses.replace(config, algorithm=AlgorithmConfig()) if config.algorithm.is_record else config


def describe(config: Config) -> str:
    """The config as text for people: a line for each field that has a value."""
    return "\n".join(f"{name:<36}{value}" for name, value in flat(config).items() if value is not None)


def flat(config: Config) -> dict[str, Any]:
    """Every field by its dotted name: "search.num_simulations"."""
    return {field.name: value_at(config, field.name) for field in fields_of(Config)}


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """The config with other values of some fields, by their dotted names (`flat`); ranges are not checked."""
    for name, value in values.items():
        group, _, field_name = name.rpartition(".")
        changed = {field_name: value}
        if group:
            changed = {group: dataclasses.replace(getattr(config, group), **changed)}
        config = dataclasses.replace(config, **changed)
    return config
