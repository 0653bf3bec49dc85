"""The records that every module passes around, with the shape and the meaning of each field.

Letters: B games at once, T moves a rollout, N windows a batch, K `unroll_steps`, n `td_steps`, L frames a window,
A actions, S bins of a support, C the replay's length in frames, G symmetries, O the size of a flattened observation.

One convention does most of the work: only `discount` carries the sign and the end of a game. It is 0 if the move ended
the game, +gamma if the same player moves next and -gamma if the other one does, so that the single recursion
`G_t = r_{t+1} + d_{t+1} G_{t+1}` serves single-player and two-player games, in the targets and in the tree.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import jax
from jax import Array

Params = Any  # a pytree of network weights, float32


class PgxState(Protocol):
    """The state of a game in pgx's form; for B games every leaf has a leading axis."""

    current_player: Array  # [] int32, the seat of the player to move
    observation: Array  # [*obs], as that player sees the game
    legal_action_mask: Array  # [A] bool
    rewards: Array  # [2] float32, of the last move, by seat ([1] in a single-player game)
    terminated: Array  # [] bool, the rules ended the game
    truncated: Array  # [] bool, a time limit ended it
    _x: Any  # the rest of the rules' state, in most of pgx's own games
    replace: Callable[..., Any]  # (field=value, ...) -> a changed copy, in most; `games.states.with_fields` is for all


if TYPE_CHECKING:
    EnvState = PgxState
else:
    EnvState = Any  # self-play and search take any pytree; matches and play get `games.states.wrapped` ones


class Transition(NamedTuple):
    """One move of one game, as the player who moved saw it; leading axes [T, B, ...], [C, B, ...] or [N, L, ...]."""

    observation: Array  # [*obs] bool, or float32 for counts, or uint8 for a picture; what the player to move sees
    legal_action_mask: Array  # [A] bool, True = legal
    action: Array  # [] int32
    reward: Array  # [] float32, after `action`, for the player who moved
    discount: Array  # [] float32, 0 if `action` ended the game, else +gamma or -gamma
    is_last: Array  # [] bool, the last frame of an episode; if its discount is not 0, a time limit ended it
    search_policy: Array  # [A] float32, pi: the search's improved policy
    search_value: Array  # [] float32, nu: the search's value of the position, for the player to move
    explored: Array  # [] bool, True if `action` was drawn at random instead of chosen by search
    in_full: Array | None = None  # [] bool, False after a cheap search, whose policy is not learned; None: all full
    state: EnvState | None = None  # before the move; None unless Reanalyze searches with the ground-truth model
    outcome: Array | None = None  # [] int32, `Step.outcome`; None in a game without listed chance
    simulations: Array | None = None  # [] float32, `SearchOutput.simulations`; the buffer does not keep it


class NetworkOutput(NamedTuple):
    """The networks' outputs for one position, or for a batch of them ([N, ...])."""

    embedding: Array  # [*e], the model's state s^k, min-max scaled to [0, 1]; or the logits of an observation's bits,
    #   and of a network that imagines none the observation
    reward_logits: Array  # [S] (or [1] with scalar heads), of the move that led here; zeros at a root
    value_logits: Array  # [S] (or [1]), for the player to move here
    policy_logits: Array  # [A], unmasked
    extras: dict[str, Array] = {}  # further heads by name, your own or ours (`algorithm.heads`); with chance also
    #   chance_logits [C], at an afterstate: the code of what chance does next


LEGAL_LOGITS = "legal_logits"
"""In `NetworkOutput.extras`: for each action a number, above 0 if the model predicts that it is legal."""
DISCOUNT_LOGITS = "discount_logits"
"""In `NetworkOutput.extras`: three logits of the discount of the move that led here: -gamma, 0, +gamma."""
ACTION_VALUES = "action_values"
"""In `NetworkOutput.extras`: for each action the expected return, in shares of the largest that is represented."""


class Head(NamedTuple):
    """A read-out of the networks beyond policy, value and reward, with its loss. All parts of the program read it."""

    name: str  # of its loss: metric `train/NAME_loss`
    output: str  # of its numbers in `NetworkOutput.extras`
    size: int | None  # how many these are; None: one for each action
    at: Literal["position", "move"]  # what they tell of: the position, or the move that led there
    loss: Callable[[Array, Array], Array]  # (the numbers [..., size], targets [..., size]) -> [...]
    target: Callable[["Batch"], Array]  # [N, K+1, size] of positions, [N, K, size] of moves
    weight: float = 1.0
    frames: Literal["root", "all"] = "root"  # as in `losses.Term`


class Model(NamedTuple):
    """A model as pure functions over `params`; batch-first everywhere, as mctx expects."""

    init: Callable[[Array], Params]  # key -> params
    initial_inference: Callable[[Params, Array], NetworkOutput]  # (params, observation [N, *obs]) -> f(h(o))
    recurrent_inference: Callable[[Params, Array, Array], NetworkOutput]  # params, embedding, action [N] -> f(g(s, a))
    reconstruct: Callable[[Params, Array], Array]  # (params, embedding) -> logits of the observation [N, *obs]
    to_scalar: Callable[[Array], Array]  # value or reward logits [..., S] -> expected scalar [...]
    scalar_loss: Callable[[Array, Array], Array]  # (logits [..., S], target [...]) -> loss [...]
    layer_bytes: int | None = None  # of board convolutions: a layer's float32 activations of a position; else None
    project: Callable[[Params, Array], Array] | None = None  # (params, embedding) -> [N, D], to compare embeddings by
    predict_projection: Callable[[Params, Array], Array] | None = None  # (params, projection [N, D]) -> [N, D]
    bound: float | None = None  # returns, and so rewards and values, lie in [-bound, bound]; None: not known
    num_codes: int = 0  # C; with chance `recurrent_inference` takes an action or, from an afterstate, A + code
    encode_chance: Callable[..., Array] | None = None  # params, observation, the next one -> logits of the code [N, C]
    follow_code: Callable[..., NetworkOutput] | None = None  # params, embedding, one-hot code [N, C], with its gradient
    rounds_embeddings: bool = False  # the dynamics round their input embedding, so no gradient passes
    heads: tuple[Head, ...] = ()  # those in `NetworkOutput.extras` that search and losses read


class Symmetries(NamedTuple):
    """The G symmetries of a game's rules; index 0 is the identity.

    The observation `o` becomes `o.ravel()[observation_permutation[g]] ^ observation_flip[g]`, action `a` becomes
    `action_permutation[g, a]`; values and rewards stay as they are.
    """

    observation_permutation: Array  # [G, O] int32
    observation_flip: Array  # [G, O] bool, True where a bool plane is negated (the plane of the colour to move)
    action_permutation: Array  # [G, A] int32
    outcome_permutation: Array | None = None  # [G, C] int32, what `Step.outcome` becomes; None: not known


class Board(NamedTuple):
    """The parts of a game that only games on a board have."""

    shape: tuple[int, int]  # (H, W)
    action_location: Array  # [A] int32, the board cell (row * W + column) that an action touches, -1 for none
    symmetries: Symmetries


class Step(NamedTuple):
    """The result of a move."""

    state: EnvState
    reward: Array  # [] float32, for the player who moved
    discount: Array  # [] float32, signed; 0 if the rules ended the game
    is_last: Array  # [] bool, the episode is over, by the rules or by a time limit, which leaves the discount unchanged
    outcome: Array | None = None  # [] int32, what chance did, -1 for nothing; None in a game without listed chance


class Afterstate(NamedTuple):
    """The result of a move before chance acts: an afterstate, or the next position if chance has no part in it."""

    state: EnvState
    reward: Array  # [] float32, of the move itself, for the player who moved
    discount: Array  # [] float32: 1 if chance acts next, whose `Step` has sign and gamma; else as in `Step`
    is_last: Array  # [] bool, as in `Step`; False if chance acts next
    awaits_chance: Array  # [] bool, True if chance acts next


class Chance(NamedTuple):
    """The chance of a game whose rules list its C outcomes (Antonoglou et al. 2022, section 3).

    All three functions are total: they accept any state, action and outcome, and return no NaN.
    """

    num_outcomes: int  # C
    move: Callable[[EnvState, Array], Afterstate]  # (state, action) -> the result before chance acts
    probabilities: Callable[[EnvState], Array]  # state of an afterstate -> [C] float32, which sum to 1
    resolve: Callable[[EnvState, Array], Step]  # (state of an afterstate, outcome) -> next state, reward for who moved


class SearchRoots(NamedTuple):
    """B positions to search. The learned model reads the first two fields, the ground-truth model the state."""

    observation: Array  # [B, *obs], each as the player to move sees it
    legal_action_mask: Array  # [B, A] bool
    state: EnvState | None  # leaves [B, ...]; None if only a learned model searches


class Environment(NamedTuple):
    """A game as pure functions of one state; callers `vmap` them.

    `move` must accept the state of a finished episode, because searches make moves there too and ignore the results.
    """

    name: str
    init: Callable[[Array], EnvState]  # key -> a fresh game
    move: Callable[..., Step]  # (state, action, key); the key samples chance
    observe: Callable[[EnvState], Array]  # state -> what the player to move sees [*obs]
    legal: Callable[[EnvState], Array]  # state -> [A] bool, True = legal
    num_actions: int
    observation_shape: tuple[int, ...]
    num_players: int
    discount: float | None  # signed, between two moves: -gamma if the players alternate; None: not constant
    board: Board | None = None
    chance: Chance | None = None  # None: no chance, or outcomes that are not listed and that `move` samples
    costly_start: bool = False  # whether `init` takes much longer than `move`; self-play then makes few fresh games
    game: Any = None  # how people see it, a `games.game.Game`; None: a plain one
    gamma: float | None = None  # |discount| of the moves that end no game; None: the discount's, or not known

    def roots(self, states: EnvState) -> SearchRoots:
        """The positions of B games (leaves [B, ...])."""
        return SearchRoots(jax.vmap(self.observe)(states), jax.vmap(self.legal)(states), states)


class QTransform(NamedTuple):
    """sigma(q) = (maxvisit_init + max_b N(b)) value_scale q (Danihelka et al. 2022, equation 8)."""

    value_scale: float
    maxvisit_init: float
    rescale_values: bool  # to [0, 1] first, as in mctx; an untrained value's noise then becomes large logits


class SearchOutput(NamedTuple):
    """The result of searching a batch of positions."""

    action: Array  # [B] int32
    policy: Array  # [B, A] float32, the improved policy
    value: Array  # [B] float32, the improved value for the player to move
    tree: Any = None  # the trees themselves, to look at; costs nothing in a program that does not return them
    in_full: Array | None = None  # [B] bool, False from a cheap search (`search.playout_cap`); None: all were full
    simulations: Array | None = None  # [B] float32, how many it made for each position; None: it is no tree search


SearchFn = Callable[[Params, Array, SearchRoots], SearchOutput]
"""(params, key, B positions) -> SearchOutput. `key` samples the search's noise, and chance inside its trees."""


class Targets(NamedTuple):
    """The targets of the K+1 predictions of N unrolled windows."""

    reward: Array  # [N, K]; 0 past the end
    value: Array  # [N, K+1]; 0 past the end
    policy: Array  # [N, K+1, A]
    policy_mask: Array  # [N, K+1] float32, 0 past the end and after a cheap search; else 1 (or `weigh_policies`)
    alive: Array  # [N, K+1] float32, 0 past the end
    mask: Array  # [N, K+1] float32, 0 past a time limit, where nothing is known
    discount: Array  # [N, K] float32, signed, of each move; 0 past the end
    extras: dict[str, Array] = {}  # targets of further heads by name, [N, ...] each; symmetries leave them unchanged
    by_action: dict[str, Array] = {}  # likewise [N, K+1, A], which symmetries turn as they turn policies


class Batch(NamedTuple):
    """N windows as a gradient step reads them; F = 1, or K + 1 if a loss reads all frames (`losses.Term`)."""

    observation: Array  # [N, F, *obs]
    legal_action_mask: Array  # [N, F, A]
    actions: Array  # [N, K], to unroll
    targets: Targets
    weight: Array  # [N] float32, of each window in every loss; 1 without priorities
    extras: dict[str, Array] = {}  # with chance `codes` [N, K] int32 of what it did, random if not known


class Sample(NamedTuple):
    """Windows sampled from the buffer, by where they start; leaves [..., N]."""

    slot: Array  # int32
    game: Array  # int32
    weight: Array  # float32, importance weights against the bias of priorities; 1 without priorities


class WriteBack(NamedTuple):
    """What learning found out about M stored frames, to be written back into the buffer."""

    slot: Array  # [..., M] int32, modulo the buffer's length
    game: Array  # [..., M] int32
    is_known: Array  # [..., M] bool; False writes nothing
    values: dict[str, Array]  # [..., M, ...] by name: a `priority`, or fields of `Transition`; skipped if not stored


class Unrolled(NamedTuple):
    """The model's outputs for N windows: for their first position, and after each of K imagined moves.

    Leaves [N, K+1, ...]. As in `NetworkOutput`, what is predicted of a move stands at the position that the move led
    to, so it means nothing at index 0.
    """

    embedding: Array  # [N, K+1, *e]
    reward_logits: Array  # [N, K+1, S], of moves
    value_logits: Array  # [N, K+1, S]
    policy_logits: Array  # [N, K+1, A]
    extras: dict[str, Array] = {}  # `NetworkOutput.extras`; with chance also [N, K, ...], for each move:
    #   chance_logits and afterstate_value_logits, of its afterstate; code_probabilities, of an encoder
    params: Params = None  # and the model itself, for losses that compute more from the embeddings
    model: Any = None  # a `Model`


class ReplayState(NamedTuple):
    """A time-major buffer: frame t of game b lies at [t mod C, b], so the next slot holds the next frame."""

    transitions: Transition  # leaves [C, B, ...], packed by `replay.pack`
    insert_index: Array  # [] int32, the slot that the next frame is written to
    num_stored: Array  # [] int32, frames stored, at most C
    priority: Array | None = None  # [C, B] float32, of a window that starts there; None: without priorities


class ActorState(NamedTuple):
    """The games in progress."""

    env_state: EnvState  # leaves [B, ...]
    num_moves: Array  # [B] int32, moves made in each game
    return_so_far: Array | None = None  # [B] float32, the sum of each game's rewards; None in two-player games
    extras: dict[str, Any] = {}  # leaves [B, ...], of `learning.starts` or your own `init_actor` and `rollout`


class LearnerState(NamedTuple):
    """The weights and the optimiser's state."""

    params: Params
    optimiser_state: Any  # in float16 with the scale of the loss
    num_updates: Array  # [] int32, including steps that float16 skipped for an overflow
    target_params: Params | None = None  # of the target network; None without one
    average_params: Params | None = None  # a moving average, the agent's weights instead of `params`; None without one

    @property
    def agent_params(self) -> Params:
        """The weights that are evaluated, saved as versions and played with."""
        return self.params if self.average_params is None else self.average_params

    @property
    def search_params(self) -> Params:
        """The weights with which Reanalyze searches: those of the target network, if there is one."""
        return self.params if self.target_params is None else self.target_params


class TrainState(NamedTuple):
    """The state of a run: all that a checkpoint holds."""

    actor: ActorState
    learner: LearnerState
    replay: ReplayState
    iteration: Array  # [] int32
    seed_key: Array  # [] typed PRNG key; the keys of iteration i come from fold_in(seed_key, i)


Metrics = dict[str, Array]  # scalars by name, grouped by a prefix and a slash: `train/...`, `selfplay/...`
LossOf = Callable[[Params, Batch], tuple[Array, Metrics]]
"""(params, batch) -> the loss, a mean over the batch, and metrics."""
