"""What the numbers of a run mean: a table of signs, the likeliest causes of a failure first.

Limits lie between the sound runs and those with planted faults of docs/results/2026-11-29-doctor.md (`python -m
pytest -m slow tests/apps/doctor`). A number that a run does not have is NaN, so that its signs are absent.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from muzero_jax.apps.doctor.records import Numbers


class Sign(NamedTuple):
    """A sign that something is wrong."""

    finding: str
    is_there: Callable[["Known"], bool]
    evidence: str  # with the names of numbers in braces
    sound: str  # what a sound run has
    surety: Literal["certain", "likely", "possible"]
    advice: str


class Symptom(NamedTuple):
    """A sign that a run has."""

    finding: str
    evidence: str
    sound: str
    surety: str
    advice: str


class Known(dict[str, Any]):
    """Numbers by name, NaN for one that was not measured: comparisons with it are false."""

    def __missing__(self, name: str) -> float:
        return math.nan


FEW_UPDATES = 300
"""Up to so many, a network may predict nothing yet."""


def has_learned(numbers: Known) -> bool:
    """Whether the network should predict something by now."""
    return numbers["updates"] > FEW_UPDATES


IN_TARGETS = "look at `make_targets` of your own algorithm, and at the rewards and discounts of your own game"
SIGNS = (
    Sign(
        "self-play stores other rewards or discounts than the rules give",
        lambda n: n["wrong_rewards"] > 0 or n["wrong_discounts"] > 0,
        "{wrong_rewards:.1%} of rewards and {wrong_discounts:.1%} of discounts differ when the moves are made again",
        "none",
        "certain",
        "look at `rollout` of your own algorithm, and whether your own game's rules depend on more than its state",
    ),
    Sign(
        "self-play stores other observations or legal moves than the rules give",
        lambda n: n["wrong_observations"] > 0 or n["wrong_legal_moves"] > 0,
        "{wrong_observations:.1%} of observations and {wrong_legal_moves:.1%} of legal moves differ when the moves "
        "are made again",
        "none",
        "certain",
        "look at `rollout` of your own algorithm, and whether your own game's rules depend on more than its state",
    ),
    Sign(
        "self-play makes illegal moves",
        lambda n: n["illegal_moves"] > 0,
        "{illegal_moves:.1%} of moves",
        "none",
        "certain",
        "look at `choose` and `make_search` of your own algorithm",
    ),
    Sign(
        "self-play's moves are random",
        lambda n: n["follows_search"] < 0.35 or n["random_share"] > 0.6,
        "moves follow the search by {follows_search:.2f}, where 1 is always and 0 is a uniform choice; "
        "{random_share:.0%} are marked as random",
        "0.6 to 1.2",
        "certain",
        "lower --self-play.exploration; look at `choose` of your own algorithm",
    ),
    Sign(
        "value targets have the wrong sign",
        lambda n: n["target_error"] > 1.2 and n["flipped_target_error"] < 0.8,
        "beside how games ended they are wrong by {target_error:.2f} times the result, and with the other sign by "
        "{flipped_target_error:.2f} times",
        "0 to 0.5; 1 for targets of 0, 2 for the wrong sign",
        "certain",
        IN_TARGETS,
    ),
    Sign(
        "reward targets are not the rewards of the moves",
        lambda n: n["reward_target_error"] > 0.05,
        "they differ by {reward_target_error:.2f} of the mean reward",
        "0",
        "certain",
        IN_TARGETS + "; a reward belongs to the move before it",
    ),
    Sign(
        "policy targets are those of another position",
        lambda n: n["policy_target_distance"] > 0.3 and n["policy_target_of_next"] < n["policy_target_distance"],
        "they are {policy_target_distance:.2f} away from the search's policies of their own positions, and "
        "{policy_target_of_next:.2f} from those of the next, where the other player moves",
        "0 and 0.5 to 1",
        "certain",
        IN_TARGETS,
    ),
    Sign(
        "policy targets are not the search's policies",
        lambda n: n["policy_target_illegal"] > 0.01 or 0.3 < n["policy_target_distance"] <= n["policy_target_of_next"],
        "they are {policy_target_distance:.2f} away from these, and {policy_target_illegal:.1%} is on illegal moves",
        "0 and 0",
        "likely",
        IN_TARGETS,
    ),
    Sign(
        "no policy is learned",
        lambda n: n["policies_learned"] < 0.02,
        "{policies_learned:.0%} of policy targets count in the loss",
        "all of them, or the share of full searches (--self-play.full-search-share)",
        "certain",
        "look at `policy_mask` in `make_targets` of your own algorithm",
    ),
    Sign(
        "some weights are not trained",
        lambda n: has_learned(n) and n["untrained_weights"] > 0,
        "these are as they were at the beginning: {untrained}",
        "all change",
        "certain",
        "a loss is missing or has weight 0, or a head of your own network does not depend on the embedding",
    ),
    Sign(
        "the value head says the same of all positions",
        lambda n: has_learned(n) and n["value_spread"] < 0.02 and n["target_spread"] > 0.1,
        "its values spread by {value_spread:.3f}, their targets by {target_spread:.2f}",
        "0.2 to 1",
        "certain",
        "look at the head of your own network, and at --optimiser.value-weight",
    ),
    Sign(
        "games are all alike",
        lambda n: n["games"] >= 100 and n["commonest_opening"] > 0.9,
        "{commonest_opening:.0%} of {games:.0f} games have the same opening",
        "5% to 50%",
        "likely",
        "raise --self-play.exploration or --search.gumbel-scale",
    ),
    Sign(
        "rewards are hardly ever seen",
        lambda n: n["rewarded_games"] < 0.05,
        "{rewarded_games:.1%} of games have one",
        "all, in a game that is seldom drawn",
        "possible",
        "let games last longer, give rewards on the way, or make the first task easier",
    ),
    Sign(
        "Reanalyze's values are not those of the network",
        lambda n: n["stale_value"] > 0.5,
        "a new search's values differ from the refreshed ones by {stale_value:.2f} of their spread",
        "0 to 0.2",
        "likely",
        "look at the target network (--optimiser.target-period, target-decay) and `reanalyze` of your own algorithm",
    ),
    Sign(
        "the learning rate is too high",
        lambda n: n["learning_rate"] > 4 * n["usual_learning_rate"] or n["update_to_weight"] > 0.008,
        "an update moves the weights by {update_to_weight:.2%} of their length, with a peak of {learning_rate:.2g}",
        "0.1% to 0.5%, with the preset's peak of {usual_learning_rate:.2g}",
        "likely",
        "lower --optimiser.learning-rate",
    ),
    Sign(
        "each position is learned from too rarely",
        lambda n: n["samples_per_frame"] < n["usual_samples_per_frame"] / 4,
        "each frame is sampled {samples_per_frame:.2f} times",
        "{usual_samples_per_frame:.2f} in the preset",
        "likely",
        "raise --optimiser.updates-per-iteration, or lower --self-play.num-envs",
    ),
    Sign(
        "each position is learned from too often",
        lambda n: n["samples_per_frame"] > 8 * n["usual_samples_per_frame"],
        "each frame is sampled {samples_per_frame:.2f} times",
        "{usual_samples_per_frame:.2f} in the preset",
        "possible",
        "lower --optimiser.updates-per-iteration, or raise --self-play.num-envs",
    ),
    Sign(
        "values say the opposite of how games end",
        lambda n: has_learned(n) and n["value_agrees"] < -n["value_agrees_within"],
        "their correlation with the results is {value_agrees:.2f}",
        "0.4 to 1",
        "likely",
        "look at the signs of discounts in your own game, and at a loss of your own",
    ),
    Sign(
        "the network learns no policy",
        lambda n: has_learned(n) and n["prior_entropy"] > 0.95 and n["target_entropy"] < 0.9,
        "the entropy of its policies is {prior_entropy:.2f} of the largest possible, that of the search's "
        "{target_entropy:.2f}",
        "0.2 to 0.8 and 0.1 to 0.6",
        "likely",
        "look at --optimiser.policy-weight and at the policy head of your own network",
    ),
    Sign(
        "the model does not know what a move does",
        lambda n: has_learned(n) and n["imagined_agrees"] < 0.7,
        "the correlation of values after an imagined move with those after the real one is {imagined_agrees:.2f}",
        "0.9 to 1",
        "likely",
        "raise --optimiser.reconstruction-weight (the presets of board games have 10), or train for longer",
    ),
    Sign(
        "the model does not foresee rewards",
        lambda n: has_learned(n) and n["reward_error"] > 0.85,
        "its predictions of rewards are wrong by {reward_error:.2f} of these",
        "0.1 to 0.5",
        "likely",
        "raise --replay.end-weight or --optimiser.reward-weight, or train for longer",
    ),
    Sign(
        "the search does not improve on the policy head",
        lambda n: has_learned(n) and n["search_beats_head"] < 0.38,
        "it scores {search_beats_head:.0%} against it",
        "50% to 90%",
        "likely",
        "the model or the values mislead it: see the other findings, and evaluate.py fidelity",
    ),
    Sign(
        "many games are cut off by the time limit",
        lambda n: n["cut_off_share"] > 0.3,
        "{cut_off_share:.0%} of games",
        "none, unless the game is meant to go on",
        "possible",
        "raise the limit of your own game",
    ),
    Sign(
        "one side wins nearly all games",
        lambda n: abs(n["first_player_wins"] - 0.5) > 0.47 and n["games"] >= 100 and n["value_agrees"] < 0.5,
        "who begins wins {first_player_wins:.0%} of them, and values do not show it",
        "20% to 80%, or values that know",
        "possible",
        "look at who gets the reward in your own game; else let games begin elsewhere (--self-play.starts random)",
    ),
    Sign(
        "training is unstable",
        lambda n: has_learned(n) and (n["clipped_share"] > 0.5 or n["jump_share"] > 0.2),
        "{clipped_share:.0%} of gradients are clipped, and in {jump_share:.0%} of records the loss jumps",
        "below 10% of each",
        "likely",
        "lower --optimiser.learning-rate",
    ),
    Sign(
        "the learning rate never fell",
        lambda n: n["has_ended"] == 1 and n["learning_rate_left"] > 0.9 and n["usual_learning_rate_left"] < 0.5,
        "at the end it is {learning_rate_left:.0%} of its peak",
        "{usual_learning_rate_left:.0%} in the preset",
        "possible",
        "--optimiser.schedule cosine",
    ),
    Sign(
        "a loss does not move",
        lambda n: has_learned(n) and (n["value_loss_varies"] < 1e-3 or n["policy_loss_varies"] < 1e-3),
        "the value loss varies by {value_loss_varies:.1%}, the policy loss by {policy_loss_varies:.1%}",
        "10% to 50%",
        "likely",
        "look at the head and the loss, and whether the learning rate is above 0",
    ),
    Sign(
        "it has hardly learned yet",
        lambda n: n["updates"] <= FEW_UPDATES,
        "{updates:.0f} updates",
        "some thousands",
        "possible",
        "train for longer",
    ),
    Sign(
        "evaluations are too short to tell a difference",
        lambda n: n["evaluation_games"] < 32,
        "{evaluation_games:.0f} games have an interval of more than 17 points to either side",
        "128 games, or 9 points",
        "possible",
        "raise --evaluation.games",
    ),
)
ORDER = ("certain", "likely", "possible")


def find(numbers: Numbers, untrained: Sequence[str] = ()) -> list[Symptom]:
    """The signs that a run has, likeliest causes first. `untrained` are the names of weights that never changed."""
    known = Known(numbers, untrained=", ".join(untrained))
    found = [
        Symptom(s.finding, s.evidence.format_map(known), s.sound.format_map(known), s.surety, s.advice)
        for s in SIGNS
        if s.is_there(known)
    ]
    return sorted(found, key=lambda finding: ORDER.index(finding.surety))
