"""MuZero's network for games with chance: Stochastic MuZero (Antonoglou et al. 2022, section 4).

A move leads to an *afterstate*, and then one of C codes says what chance did. The paper has one network for each step,
phi and g, and one for the predictions at an afterstate, psi. Here one trunk makes both steps and one reads both kinds
of embedding, because a batch of simulations mixes both kinds of step, and one call then serves them all. What is added
to the input of the dynamics shows which of the A moves or C codes it follows. An afterstate's value and distribution
have their own read-outs.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax.networks.layers import Dense, Embed, Residual, min_max_scale
from muzero_jax.networks.network import MuZeroNetwork, output_of, position_heads
from muzero_jax.ops.observations import as_numbers
from muzero_jax.types import NetworkOutput


class ChanceNetwork(MuZeroNetwork):
    """`MuZeroNetwork` with chance after every move, of C = `num_codes` codes.

    Index a < A of `recurrent_inference` is a move from a position; its output is of the afterstate: reward and value
    for the player who moved, and the codes' logits. Index A + c is code c from an afterstate; its output is of the next
    position, as MuZero's. Both are total: every index has a finite answer at either kind of embedding.
    """

    def setup(self):
        super().setup()
        s = self.sizes
        self.code_encoder = Embed(s.abilities.num_codes, s.width, dtype=s.dtype)
        if s.abilities.encodes_chance:
            self.chance_trunk = Residual(s, Dense)
            self.chance_head = nn.Dense(s.abilities.num_codes, dtype=s.dtype)

    def __call__(self, observation, action):
        super().__call__(observation, action)
        if self.sizes.abilities.encodes_chance:
            self.encode_chance(observation, observation)

    def recurrent_inference(self, embedding, action):
        num_actions = self.sizes.num_actions
        num_codes = self.sizes.abilities.num_codes
        is_move = action < num_actions
        of_move = self.action_encoder(jnp.clip(action, 0, num_actions - 1))
        of_code = self._on_board(self.code_encoder(jnp.clip(action - num_actions, 0, num_codes - 1)))
        return self._follow(embedding, jax.vmap(jnp.where)(is_move, of_move, of_code), is_move)

    def follow_code(self, embedding, code):
        """As `recurrent_inference` at A + code, for a one-hot code [N, C], to which a gradient passes."""
        encoded = code.astype(self.sizes.dtype) @ self.code_encoder.embedding.astype(self.sizes.dtype)
        return self._follow(embedding, self._on_board(encoded), jnp.zeros(code.shape[0], bool))

    def encode_chance(self, observation, next_observation) -> Float[Array, "N C"]:
        """Logits of the code of what chance did between two observations [N, *obs], each seen by its player to move.

        It reads both, because their difference is what the move and chance did.
        """
        flat = [as_numbers(x).astype(self.sizes.dtype).reshape(x.shape[0], -1) for x in (observation, next_observation)]
        trunk = self.sizes.activation(self.chance_trunk(jnp.concatenate(flat, axis=-1)))
        return self.chance_head(trunk).astype(jnp.float32)

    def _follow(self, embedding, encoded, is_move) -> NetworkOutput:
        trunk = self.dynamics(embedding, bias=encoded)
        return self._predict(min_max_scale(trunk), self.reward_head(trunk), is_move)

    def _read_outs(self):
        s = self.sizes
        return position_heads(s) | {"afterstate_value": s.num_bins, "chance_logits": s.abilities.num_codes}

    def _on_board(self, encoded: Array) -> Array:
        """An encoded code, the same for every cell of a board; unchanged without a board."""
        return encoded if self.board is None else encoded[:, None, None, :]

    def _predict(self, embedding, of_move, is_move=None):
        heads = self.prediction_heads(self.prediction(embedding))
        of_afterstate = heads.pop("afterstate_value")
        if is_move is not None:
            heads["value_logits"] = jnp.where(is_move[:, None], of_afterstate, heads["value_logits"])
        return output_of(embedding, heads | of_move)
