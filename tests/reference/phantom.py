"""Dark Hex and phantom tic-tac-toe on 3x3 in plain Python."""

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class Game:
    """A game in progress; `play` returns the mover's reward."""

    def __init__(self, *, is_hex, abrupt):
        self.is_hex, self.abrupt = is_hex, abrupt
        self.stones = [set(), set()]
        self.tried = [set(), set()]
        self.player = 0
        self.over = False

    def legal(self):
        """The cells that the mover has not tried."""
        return [cell for cell in range(9) if cell not in self.tried[self.player]]

    def play(self, cell):
        """A try."""
        mover = self.player
        self.tried[mover].add(cell)
        if cell in self.stones[1 - mover]:
            self.player = 1 - mover if self.abrupt else mover
            return 0.0
        self.stones[mover].add(cell)
        won = self.joins(mover) if self.is_hex else any(set(line) <= self.stones[mover] for line in LINES)
        self.over = won or len(self.stones[0] | self.stones[1]) == 9
        self.player = 1 - mover
        return float(won)

    def joins(self, player):
        """Whether a chain joins both edges of the player, found cell by cell."""
        own = self.stones[player]
        place = {cell: divmod(cell, 3) for cell in own}
        reached = {cell for cell in own if place[cell][player] == 0}
        while True:
            more = {
                cell
                for cell in own - reached
                for other in reached
                if (place[cell][0] - place[other][0], place[cell][1] - place[other][1])
                in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1))
            }
            if not more:
                return any(place[cell][player] == 2 for cell in reached)
            reached |= more
