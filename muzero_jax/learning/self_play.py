"""Self-play: a scan of search and step over B games at once."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from muzero_jax.learning.starts import KEY, Starts, count, first_games, of_whole_games, one_of, without_sums
from muzero_jax.ops.conditional import where_each
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import ActorState, Environment, EnvState, Model, Params, SearchFn, SearchOutput, Step, Transition


def init(environment: Environment, key: Array, *, num_envs: int, starts: Starts | None = None) -> ActorState:
    """B = `num_envs` fresh games; `key` is split for their `init`. `starts` as in `rollout`."""
    env_state = jax.vmap(environment.init)(jax.random.split(key, num_envs))
    return_so_far = jnp.zeros(num_envs) if environment.num_players == 1 else None
    actor = ActorState(env_state, jnp.zeros(num_envs, jnp.int32), return_so_far)
    return actor if starts is None else first_games(starts, actor)


Choose = Callable[[Array, SearchOutput, Array, Array], tuple[Array, Array]]
"""(key, what search found, legal moves [B, A], moves made [B]) -> the move [B], and whether it was drawn at random"""


def as_found(key: Array, found: SearchOutput, legal_action_mask: Array, num_moves: Array) -> tuple[Array, Array]:
    """The move that search chose, never drawn at random."""
    del key, legal_action_mask, num_moves
    return found.action, jnp.zeros(found.action.shape, bool)


@jax.named_scope("rollout")
def rollout(
    params: Params,
    actor: ActorState,
    key: Array,
    *,
    environment: Environment,
    search: SearchFn,
    length: int,
    choose: Choose = as_found,
    keeps_state: bool = False,
    starts: Starts | None = None,
    model: Model | None = None,
) -> tuple[ActorState, Transition]:
    """Plays T = `length` moves of every game; a finished game is followed by a fresh one.

    Args:
      params: the network's weights. actor: the B games in progress.
      key: is split for searches, choices and chance, move by move.
      search: finds policies and values for the B positions.
      choose: which move is played after a search: `choose` with its hyperparameters bound, or the search's own.
      keeps_state: whether the transitions also hold the game's state.
      starts: where the games that follow begin; None: at the beginning.
      model: the network, for `starts` that ask it.

    Returns:
      the games as they stand, and the transitions [T, B, ...]. Each holds the observation from *before* its move, and
      the reward and discount from before any reset, so nothing leaks from one game into the next.
    """
    if starts is None:
        step = with_reset(environment, begin_few(environment) if environment.costly_start else begin_all(environment))
    else:
        key, starts_key = jax.random.split(key)
        actor = without_sums(actor)
        drawn = starts.draw(environment, actor.extras[KEY].kept, starts_key, len(actor.num_moves))
        begin = jax.vmap(partial(one_of, drawn, environment))
        step = with_reset(environment, lambda keys, moved: begin(keys))

    def play(actor: ActorState, frame_key: Array) -> tuple[ActorState, Transition]:
        search_key, choose_key, step_key = jax.random.split(frame_key, 3)
        roots = environment.roots(actor.env_state)
        with jax.named_scope("search"):
            found = search(params, search_key, roots)
        action, explored = choose(choose_key, found, roots.legal_action_mask, actor.num_moves)
        moved, num_moves = step(actor.env_state, action, jax.random.split(step_key, len(action)))
        return_so_far = actor.return_so_far
        if return_so_far is not None:
            return_so_far = jnp.where(moved.is_last, 0.0, return_so_far + moved.reward)
        after = actor._replace(
            env_state=moved.state,
            num_moves=jnp.where(moved.is_last, num_moves, actor.num_moves + 1),
            return_so_far=return_so_far,
        )
        if starts is not None:
            after = count(actor, after, moved.is_last, moved.reward)
        return after, Transition(
            observation=roots.observation,
            legal_action_mask=roots.legal_action_mask,
            action=action,
            reward=moved.reward,
            discount=moved.discount,
            is_last=moved.is_last,
            search_policy=found.policy,
            search_value=found.value,
            explored=explored,
            in_full=found.in_full,
            state=actor.env_state if keeps_state else None,
            outcome=moved.outcome,
            simulations=found.simulations,
        )

    after, trajectory = jax.lax.scan(play, actor, jax.random.split(key, length))
    if starts is not None:
        progress = after.extras[KEY]
        kept = starts.keep(environment, model, params, after, progress.kept)
        after = after._replace(extras=after.extras | {KEY: progress._replace(kept=kept)})
    return after, trajectory


Begin = Callable[[Array, Step], tuple[EnvState, Int[Array, " B"]]]
"""(keys [B], the moves) -> games, of which those count whose move was the last; and the moves made before each"""


def with_reset(environment: Environment, begin: Begin) -> Callable[..., tuple[Step, Int[Array, " B"]]]:
    """(B games, actions, keys) -> their moves, with the next game where one ended, and the moves made before each.

    Reward, discount and `is_last` are those of the move.
    """

    def step(states: EnvState, actions: Int[Array, " B"], keys: Array) -> tuple[Step, Int[Array, " B"]]:
        move_keys, reset_keys = jax.vmap(lambda key: tuple(jax.random.split(key)))(keys)
        moved = jax.vmap(environment.move)(states, actions, move_keys)
        fresh, num_moves = begin(reset_keys, moved)
        return moved._replace(state=where_each(moved.is_last, fresh, moved.state)), num_moves

    return step


def begin_all(environment: Environment) -> Begin:
    """A fresh game for each."""

    def begin(keys: Array, moved: Step) -> tuple[EnvState, Int[Array, " B"]]:
        return jax.vmap(environment.init)(keys), jnp.zeros(moved.is_last.shape, jnp.int32)

    return begin


def begin_few(environment: Environment) -> Begin:
    """The same games, made for a sixteenth at once until each game that ended has one."""

    def begin(keys: Array, moved: Step) -> tuple[EnvState, Int[Array, " B"]]:
        size = -(-len(keys) // 16)
        ended_first = jnp.argsort(~moved.is_last)

        def fill(carry: tuple[Array, EnvState]) -> tuple[Array, EnvState]:
            done, games = carry
            place = ended_first[jnp.minimum(done + jnp.arange(size), len(keys) - 1)]
            fresh = jax.vmap(environment.init)(keys[place])
            return done + size, jax.tree.map(lambda old, new: old.at[place].set(new), games, fresh)

        begun = jnp.int32(0), moved.state
        games = jax.lax.while_loop(lambda carry: carry[0] < moved.is_last.sum(), fill, begun)[1]
        return games, jnp.zeros(moved.is_last.shape, jnp.int32)

    return begin


def choose(
    key: Array,
    found: SearchOutput,
    legal_action_mask: Bool[Array, "B A"],
    num_moves: Int[Array, " B"],
    *,
    exploration: float,
    sampled_moves: int | None = None,
) -> tuple[Int[Array, " B"], Bool[Array, " B"]]:
    """The move of each game after a search, and whether it was drawn at random instead.

    Args:
      num_moves: made so far in each game.
      exploration: probability of a uniformly random legal move instead of the search's; targets are still the search's.
        Without random moves play becomes deterministic, and the agent forgets positions that no longer occur.
      sampled_moves: after so many moves of a game the likeliest action that search found is played. None: never.
    """
    choice_key, random_key = jax.random.split(key)
    action = found.action
    if sampled_moves is not None:
        action = jnp.where(num_moves < sampled_moves, action, jnp.argmax(found.policy, axis=-1))
    explored = jax.random.bernoulli(choice_key, exploration, action.shape)
    return jnp.where(explored, uniform_legal_action(random_key, legal_action_mask), action), explored


def statistics(trajectory: Transition, before: ActorState, after: ActorState) -> dict[str, Array]:
    """Sums over a rollout, for a run's throughput and results; a decisive game is one that is not drawn.

    `finished_frames` are all moves of the games that ended, also those before this rollout. In single-player games
    `finished_returns` are likewise the sums of their rewards. `simulations` are left out if there was no tree search.
    With `starts`, lengths and returns are those of the `whole_games`, which began at the beginning.
    """
    is_last = trajectory.is_last
    frames = jnp.float32(trajectory.action.size)
    found = {}
    if trajectory.simulations is not None:
        found["selfplay/simulations"] = jnp.sum(trajectory.simulations, dtype=jnp.float32)
    if before.return_so_far is not None and after.return_so_far is not None:
        of_unfinished = jnp.sum(after.return_so_far - before.return_so_far)
        found["selfplay/finished_returns"] = jnp.sum(trajectory.reward) - of_unfinished
    found |= {
        "selfplay/games": jnp.sum(is_last, dtype=jnp.float32),
        "selfplay/decisive_games": jnp.sum(is_last & (trajectory.reward != 0), dtype=jnp.float32),
        "selfplay/frames": frames,
        "selfplay/finished_frames": frames + jnp.sum(before.num_moves) - jnp.sum(after.num_moves),
    }
    return found | of_whole_games(after)
