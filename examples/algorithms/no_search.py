"""A policy without any search: advantage-weighted regression (Peng et al. 2019, arXiv 1910.00177, algorithm 1)."""

import jax

from muzero_jax.types import SearchOutput


def change(algorithm, config, beta=0.5):
    """The policy head plays without search. It learns the played moves, weighted by how well they turned out."""

    def head(params, key, roots):
        output = algorithm.model.initial_inference(params, roots.observation)
        policy = jax.nn.softmax(output.policy_logits, where=roots.legal_action_mask)
        return SearchOutput(policy.argmax(axis=1).astype(int), policy, algorithm.model.to_scalar(output.value_logits))

    def choose(key, found, legal_action_mask, num_moves):
        return jax.random.categorical(key, jax.numpy.log(found.policy)), num_moves < 0  # no move is uniformly random

    def targets(window, progress):
        made = algorithm.make_targets(window, progress)
        value, action = (x[:, : made.value.shape[1]] for x in (window.search_value, window.action))
        weight = jax.numpy.exp(((made.value - value) / beta).clip(-3, 3)) * made.policy_mask
        return made._replace(policy=jax.nn.one_hot(action, made.policy.shape[-1]), policy_mask=weight)

    return algorithm._replace(make_search=lambda *_: head, choose=choose, make_targets=targets)
