"""How the memory of a pass grows with the number of texts B and their length T.

    python tests/tools/benchmarks/growth.py

BERT-Base, all maps kept (Linux). Each shape runs once, in a process of its own. To
the highest memory a formula is fitted, fixed + b B T + c B T²; its table goes to
README.md, and growth.png in this folder shows the points and the formula.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from speed import PEER, make_folder, write_table

HERE = Path(__file__).resolve().parent
SIDES = {"fast": "#0072B2", "plain": "#D55E00", PEER: "#009E73"}
LENGTHS = [(1, T) for T in (16, 128, 256, 384, 512)]
TEXTS = [(B, 128) for B in (1, 8, 16, 24, 32)]
SHAPES = LENGTHS + TEXTS[1:]  # (1, 128) is in both


def highest(side, folder, B, T):
    """The highest memory of a process that runs one batch, in MB."""
    command = [sys.executable, str(HERE / "speed.py"), "--folder", folder]
    command += ["--worker", side, "--memory", f"{B}x{T}"]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def terms(shapes):
    """What the fixed amount and the two rates are multiplied by, (shapes, 3)."""
    return np.array([(1, B * T, B * T * T) for B, T in shapes], float)


def fit(megabytes):
    """Fixed MB, KB a token and bytes a pair of tokens; the largest error in MB."""
    rates = np.linalg.lstsq(terms(SHAPES), megabytes, rcond=None)[0]
    return rates, np.abs(terms(SHAPES) @ rates - megabytes).max()


def draw(found):
    """Save the points and the fitted lines, over T and over B."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    ranges = [(1, T) for T in range(16, 513, 8)], [(B, 128) for B in range(1, 33)]
    for side, megabytes in found.items():
        (rates, _), measured = fit(megabytes), dict(zip(SHAPES, megabytes))
        for panel, points, line, axis in (
            (left, LENGTHS, ranges[0], 1),
            (right, TEXTS, ranges[1], 0),
        ):
            x = [shape[axis] for shape in line]
            panel.plot(x, terms(line) @ rates, color=SIDES[side], label=side)
            x, y = [shape[axis] for shape in points], [measured[p] for p in points]
            panel.plot(x, y, "o", color=SIDES[side])
    left.set(xlabel="tokens T of one text", ylabel="highest memory, MB", ylim=(0, None))
    right.set(xlabel="texts B of 128 tokens")
    left.legend(frameon=False, loc="lower right")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(HERE / "growth.png", dpi=110)


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        found = {}
        for side in SIDES:
            found[side] = [highest(side, folder, *shape) for shape in SHAPES]
            print(side, dict(zip(SHAPES, found[side])), flush=True)
    lines = [
        "| | fixed, MB | a token, KB | a pair of tokens, bytes | largest error, MB |"
    ]
    lines.append("|---" * 5 + "|")
    for side, megabytes in found.items():
        (fixed, token, pair), error = fit(megabytes)
        cells = f"{fixed:.0f} | {token * 1e3:.0f} | {pair * 1e6:.0f} | {error:.0f}"
        lines.append(f"| {side} | {cells} |")
    print(*lines, sep="\n")
    write_table("growth", lines)
    draw(found)


if __name__ == "__main__":
    main()
