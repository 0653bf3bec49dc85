"""Solved first moves of Hex without the swap: which of them win against perfect play.

3x3 to 5x5 by an exhaustive solver, 6x6 and 7x7 by a proof-number solver. W wins, so with the swap rule the other player
should take that stone; L loses. Row 1 first; the first player joins top and bottom.
"""

import numpy as np

_ROWS = {
    3: "LLW WWW WLL",
    4: "LLLW LLWL LWLL WLLL",
    5: "LLLLW LWWWW LWWWL WWWWL WLLLL",
    6: "LLLLLW LWWWWW WWWWWW WWWWWW WWWWWL WLLLLL",
    7: "LLLLLLW LLWLWWW LWWWWWL WWWWWWW LWWWWWL WWWLWLL WLLLLLL",
}
WINS = {size: np.array([[cell == "W" for cell in row] for row in rows.split()]) for size, rows in _ROWS.items()}
"""By board size: [size, size] bool, whether a first move there wins."""
