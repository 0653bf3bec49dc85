"""A program that speaks GTP or UCI, knows no rules, and fails on demand: `fake_engine.py gtp --then die --at 3`.

By GTP it puts a stone on the first cell of a board that nobody has named, row by row. By UCI it answers `go` with the
moves of `--moves`, one after another. It needs nothing but Python.
"""

import argparse
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("protocol", choices=["gtp", "uci", "usi"])
parser.add_argument("--cells", default="a1 b1 c1 a2 b2 c2 a3 b3 c3")
parser.add_argument("--moves", default="a2a3")
parser.add_argument("--at", type=int, default=0, help="the move, counted from 0, at which it does what --then says")
parser.add_argument("--then", default="")
parser.add_argument("--banner", default="")
parser.add_argument("--refuses", default="", help="a command that it refuses")
parser.add_argument("--noise", type=int, default=0, help="bytes that it writes to stderr with every answer")
parser.add_argument("--swaps", help="what it exchanges in Hex: pieces, or sides; it refuses to swap without it")
parser.add_argument("--stays", action="store_true", help="it does not obey `quit`, nor the end of its input")
parser.add_argument("--log", help="a file for all that it is told")
flags = parser.parse_args()
log = open(flags.log, "a") if flags.log else None  # noqa: SIM115
num_moves = 0
INTRODUCTION = """id name Fake
option name Skill Level type spin default 20
option name UCI_Variant type combo var gardner var dobutsu"""


def say(text):
    print(text, flush=True)


def misbehave():
    """Does what `--then` says, if it is time; returns whether that was its answer."""
    global num_moves
    num_moves += 1
    if not flags.then or num_moves <= flags.at:
        return False
    what, _, word = flags.then.partition(" ")
    if what == "die":
        print("out of luck", file=sys.stderr, flush=True)
        sys.exit(3)
    if what == "hang":
        time.sleep(60)
    while what == "flood":
        say("and another thing")
    say(word.replace("|", "\n"))
    return True


def swap(free):
    """Hex's swap as `--swaps` says, and the cell that it frees."""
    if not flags.swaps:
        return "? illegal move\n"
    (taken,) = set(flags.cells.split()) - set(free)
    mirrored = "abc"[int(taken[1]) - 1] + str("abc".index(taken[0]) + 1)
    if flags.swaps == "pieces" and mirrored != taken:
        free.remove(mirrored)
        free.append(taken)
    return "=\n"


def answer_gtp(words, free):
    if flags.refuses and " ".join(words).startswith(flags.refuses):
        return "? I would rather not\n"
    match words:
        case ["play", _, "swap-pieces"]:
            return swap(free)
        case ["all_legal_moves"]:
            return f"= {' '.join(free)}\n"
        case ["name"]:
            return "= Fake\n"
        case ["version"]:
            return "= 1.0\n"
        case ["clear_board"]:
            free[:] = flags.cells.split()
        case ["play", _, move]:
            if move not in free:
                return "? occupied\n"
            free.remove(move)
        case ["genmove", _]:
            return None if misbehave() else f"= {free.pop(0)}\n"
        case ["boardsize" | "komi" | "level", *_]:
            pass
        case _:
            return "? unknown command\n"
    return "=\n"


def answer_uci(words, moves):
    match words:
        case ["uci" | "usi" as protocol]:
            return f"{INTRODUCTION}\n{protocol}ok"
        case ["isready"]:
            return "readyok"
        case ["go", *_]:
            return None if misbehave() else f"info depth 1\nbestmove {moves.pop(0)} ponder a1a2"
    return None


if flags.banner:
    say(flags.banner)
state = flags.moves.split() if flags.protocol != "gtp" else []
for line in sys.stdin:
    if log:
        print(line.strip(), file=log, flush=True)
    sys.stderr.write("x" * flags.noise + "\n" if flags.noise else "")
    if line.strip() == "quit" and not flags.stays:
        break
    text = (answer_gtp if flags.protocol == "gtp" else answer_uci)(line.split(), state)
    if text is not None:
        say(text)
if flags.stays:
    time.sleep(60)
