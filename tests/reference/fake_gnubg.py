"""A program that talks like GNU Backgammon's terminal and knows no rules: `python fake_gnubg.py "24/18 13/11" "6/off"`.

It answers each `hint` with the next of these turns, and then says that there are no legal moves. A turn may have an
equity, and an argument several turns: "8/5 6/5=+0.159, 24/20=-0.015".
"""

import sys

turns, log = sys.argv[1:], []
print("GNU Backgammon 1.07.fake", flush=True)
for line in map(str.strip, sys.stdin):
    if line == "quit":
        break
    if line == "set turn 1":
        print("`root' is now on roll.", flush=True)
    elif line.startswith(("set b", "set d")):
        log.append(line)
        print(" GNU Backgammon  Position ID: 4HPwATDgc/ABMA\n 1. no hint yet", flush=True)
    elif line == "new session":
        print("A new session has been started.", flush=True)
    elif line.startswith("hint ") and turns:
        for rank, entry in enumerate(turns.pop(0).split(", "), 1):
            turn, _, equity = entry.partition("=")
            print(f"{rank:5}. Cubeless 0-ply   {turn:<28} Eq.: {equity or '+0.196'} (-0.004)\n       0.570 0.158 0.008")
        sys.stdout.flush()
    elif line.startswith("hint "):
        print("There are no legal moves. " + " | ".join(log[-2:]), flush=True)
    elif line.startswith("chatter "):  # which takes long to read, and fits into a pipe
        print("x\n" * int(line.split()[1]), end="", file=sys.stderr, flush=True)
    elif not line.startswith("set "):
        print(f"Unknown keyword `{line.split()[0]}'.", file=sys.stderr, flush=True)
