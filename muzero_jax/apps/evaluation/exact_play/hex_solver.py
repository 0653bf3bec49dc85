"""Solves Hex up to 5x5 with the swap rule, from the empty board on.

A depth-first search that returns each result with a *plan*: the set of empty cells that the win needs, whatever is
played elsewhere. A move outside the plan of a refutation meets the same refutation, so one answer rules out most other
moves (must-play regions and virtual connections, after Hayward et al. 2003, "Solving 7x7 Hex"). Without search, chains
that bridges join from edge to edge have won, and so has a move with threats that no single reply meets. A position
takes 0.2 ms after 12 stones and 0.6 s after the first one (one core).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.evaluation.exact_play.oracle import Oracle, to_bits

MAX_SIZE = 5


class Side(NamedTuple):
    """One player's stones and chains; a chain is the set of its adjacent cells, and the first two are the edges."""

    color: int  # 0 joins top and bottom, 1 joins left and right
    stones: int
    chains: tuple[int, ...]  # bitboards; empty once the edges are joined


def make_oracle(size: int) -> Oracle:
    """The oracle of `hex_rules` on a board of at most `MAX_SIZE`: observation [size, size, 4]."""
    return Oracle(HexSolver(size).action_values, min_plies=0, is_small=False)


class HexSolver:
    """Caches the positions that it has searched. A cell is an integer with its bit set."""

    def __init__(self, size: int):
        self._num_cells = size * size
        self._board = (1 << self._num_cells) - 1
        self._neighbours = {1 << cell: bits for cell, bits in enumerate(_neighbours(size))}
        row, column = (1 << size) - 1, sum(1 << size * line for line in range(size))
        self._edges = ((row, row << size * (size - 1)), (column, column << size - 1))
        self._eccentricity = {1 << cell: distance for cell, distance in enumerate(_eccentricity(size))}
        self._known: dict[int, tuple[bool, int]] = {}

    def action_values(self, observation: np.ndarray) -> dict[int, int]:
        """The value, for the player to move, after each legal action.

        Every first move loses, because the other player may then choose the better side by a swap. A
        swap exchanges the players' sides.
        """
        own, other = to_bits(observation[..., 0]), to_bits(observation[..., 1])
        color = int(observation[0, 0, 2])
        can_swap = bool(observation[0, 0, 3])
        if not own | other:
            return dict.fromkeys(range(self._num_cells), -1)
        values = self._stone_values(self._side(color, own), self._side(1 - color, other))
        return values | {self._num_cells: -max(values.values())} if can_swap else values

    def _stone_values(self, player: Side, other: Side) -> dict[int, int]:
        empty = self._empty(player, other)
        region = self._threats(other, empty)[0] if self._bridges(other, empty) is None else 0
        values = dict.fromkeys((cell.bit_length() - 1 for cell in _cells(empty)), -1)
        for cell in sorted(_cells(region), key=self._eccentricity.__getitem__):
            if cell & region:
                plan = self._refutation(self._place(player, cell), other, empty ^ cell)
                if plan is None:
                    values[cell.bit_length() - 1] = 1
                else:
                    region &= plan
        return values

    def _refutation(self, moved: Side, player: Side, empty: int) -> int | None:
        """The plan by which `player` wins after the last move of `moved`; None if it loses."""
        if self._bridges(moved, empty) is not None:
            return None
        region, threatened = self._threats(moved, empty)
        won, plan = self._search(player, moved, region, threatened)
        return plan if won else None

    def _search(self, player: Side, other: Side, region: int, threatened: int) -> tuple[bool, int]:
        """(whether `player`, to move, wins; the winner's plan). `region`, `threatened`: `_threats` of `other`."""
        key = (player.stones << self._num_cells | other.stones) << 1 | player.color
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._expand(player, other, region, threatened)
        return known

    def _expand(self, player: Side, other: Side, region: int, threatened: int) -> tuple[bool, int]:
        """`_search` of a new position; first tries the moves that leave the fewest answers."""
        empty = self._empty(player, other)
        moves = []
        for cell in _cells(region):
            moved = self._place(player, cell)
            plan = self._bridges(moved, empty ^ cell)
            if plan is not None:
                return True, plan | cell
            moves.append((cell, moved))
        answers = []
        for cell, moved in moves:
            answer_region, answer_threatened = self._threats(moved, empty ^ cell)
            if not answer_region:
                return True, answer_threatened | cell
            order = answer_region.bit_count(), self._eccentricity[cell]
            answers.append((order, cell, moved, answer_region, answer_threatened))
        for _, cell, moved, answer_region, answer_threatened in sorted(answers):
            if not cell & region:
                continue
            lost, plan = self._search(other, moved, answer_region, answer_threatened)
            if not lost:
                return True, plan | cell
            region &= plan
            threatened |= plan
        return False, threatened

    def _threats(self, side: Side, empty: int) -> tuple[int, int]:
        """The threats of `side`: wins by one more move.

        Returns (the cells that meet every threat: all other replies lose at once; all cells that threats need).
        """
        region = empty
        threatened = 0
        for cell in _cells(empty):
            plan = self._bridges(self._place(side, cell), empty ^ cell)
            if plan is not None:
                region &= plan | cell
                threatened |= plan | cell
                if not region:
                    break
        return region, threatened

    def _bridges(self, side: Side, empty: int) -> int | None:
        """A plan that joins the edges even if the other side moves: disjoint pairs of cells (bridges).

        The search is greedy from the first edge, so None means only that it found no plan.
        """
        if not side.chains:
            return 0
        reach, goal, *chains = side.chains
        plan = 0
        while True:
            pair = _pair(reach & goal & empty)
            if pair:
                return plan | pair
            for index, chain in enumerate(chains):
                pair = _pair(reach & chain & empty)
                if pair:
                    plan |= pair
                    empty ^= pair
                    reach |= chain
                    del chains[index]
                    break
            else:
                return None

    def _place(self, side: Side, cell: int) -> Side:
        """The side with one more stone; chains next to it are merged."""
        first, second, *others = side.chains
        joined = self._neighbours[cell]
        apart = []
        for chain in others:
            if chain & cell:
                joined |= chain
            else:
                apart.append(chain)
        stones = side.stones | cell
        if first & cell and second & cell:
            return Side(side.color, stones, ())
        if first & cell:
            return Side(side.color, stones, (first | joined, second, *apart))
        if second & cell:
            return Side(side.color, stones, (first, second | joined, *apart))
        return Side(side.color, stones, (first, second, joined, *apart))

    def _side(self, color: int, stones: int) -> Side:
        side = Side(color, 0, self._edges[color])
        for cell in _cells(stones):
            side = self._place(side, cell)
        return side

    def _empty(self, one: Side, other: Side) -> int:
        return self._board & ~(one.stones | other.stones)


def _cells(bits: int) -> Iterator[int]:
    """The single bits that are set, lowest first."""
    while bits:
        cell = bits & -bits
        yield cell
        bits ^= cell


def _pair(bits: int) -> int:
    """The lowest two set bits; 0 if fewer are set."""
    rest = bits & (bits - 1)
    return (bits ^ rest) | (rest & -rest) if rest else 0


def _neighbours(size: int) -> list[int]:
    """For each cell, the bits of adjacent cells."""
    cells = [divmod(cell, size) for cell in range(size * size)]
    steps = ((0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1))
    around = [[(row + down, column + right) for down, right in steps] for row, column in cells]
    return [sum(1 << r * size + c for r, c in near if 0 <= r < size and 0 <= c < size) for near in around]


def _eccentricity(size: int) -> list[int]:
    """For each cell, twice its hexagonal distance from the board's centre."""
    offsets = [(2 * (cell // size) - size + 1, 2 * (cell % size) - size + 1) for cell in range(size * size)]
    return [max(abs(down), abs(right), abs(down + right)) for down, right in offsets]
