"""MuZero's loss in loops over windows, unrolled steps and bins; the model is given as plain functions of one sample."""

import math


def cross_entropy(logits, target):
    """KL(target || softmax(logits)); actions of logit -inf must have target 0."""
    highest = max(logits)
    log_sum = highest + math.log(sum(math.exp(x - highest) for x in logits))
    return sum(p * (math.log(p) - (x - log_sum)) for x, p in zip(logits, target, strict=True) if p > 0)


def scalar_loss(logits, target, low, high):
    """Cross-entropy against the target's two neighbouring bins."""
    step = (high - low) / (len(logits) - 1)
    bins = [low + i * step for i in range(len(logits))]
    weights = [max(0.0, 1 - abs(min(max(target, low), high) - b) / step) for b in bins]
    return cross_entropy(logits, weights)


def reconstruction_loss(logits, observation):
    """Mean over cells of the cross-entropy between a value in [0, 1] and the probability sigmoid(logit)."""
    pairs = list(zip(logits, observation, strict=True))
    return sum(x * math.log1p(math.exp(-z)) + (1 - x) * math.log1p(math.exp(z)) for z, x in pairs) / len(pairs)


def muzero_loss(initial, recurrent, reconstruct, observation, legal, actions, targets, *, low, high):
    """Means over windows of the four parts.

    `initial(observation)` -> (embedding, value_logits, policy_logits), `recurrent(embedding, action)` -> (embedding,
    reward_logits, value_logits, policy_logits) and `reconstruct(embedding)` -> logits are of one position.
    `observation` is [N, K+1, O]: there is nothing to reconstruct where the policy is masked.
    """
    num_windows, unroll_steps = actions.shape
    parts = {"reward": 0.0, "value": 0.0, "policy": 0.0, "reconstruction": 0.0}
    for n in range(num_windows):
        embedding, value_logits, policy_logits = initial(observation[n, 0])
        policy_logits = [x if ok else -math.inf for x, ok in zip(policy_logits, legal[n], strict=True)]
        parts["value"] += scalar_loss(value_logits, targets.value[n, 0], low, high)
        alive = targets.policy_mask[n]
        parts["policy"] += alive[0] * cross_entropy(policy_logits, targets.policy[n, 0])
        parts["reconstruction"] += alive[0] * reconstruction_loss(reconstruct(embedding), observation[n, 0])
        for k in range(unroll_steps):
            embedding, reward_logits, value_logits, policy_logits = recurrent(embedding, actions[n, k])
            policy_term = alive[k + 1] * cross_entropy(policy_logits, targets.policy[n, k + 1])
            seen_term = alive[k + 1] * reconstruction_loss(reconstruct(embedding), observation[n, k + 1])
            parts["reward"] += scalar_loss(reward_logits, targets.reward[n, k], low, high) / unroll_steps
            parts["value"] += scalar_loss(value_logits, targets.value[n, k + 1], low, high) / unroll_steps
            parts["policy"] += policy_term / unroll_steps
            parts["reconstruction"] += seen_term / unroll_steps
    return {name: float(part) / num_windows for name, part in parts.items()}
