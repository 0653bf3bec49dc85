"""An entropy bonus (Williams & Peng 1991): an additional loss that keeps the policy head undecided for longer."""

import jax
import jax.numpy as jnp

from muzero_jax.learning.losses import Term, legal_policy_logits, over_depths


def change(algorithm, config, weight=0.01):
    """Adds minus the entropy of every unrolled policy to the losses."""

    def negative_entropy(outputs, batch):
        log_policy = jax.nn.log_softmax(legal_policy_logits(outputs, batch))
        entropy = -jnp.sum(jnp.exp(log_policy) * log_policy, axis=-1)
        return over_depths(batch.targets.alive * -entropy)

    return algorithm._replace(terms=(*algorithm.terms, Term("entropy", negative_entropy, weight)))
