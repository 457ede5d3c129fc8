"""Draw the moving picture of the front page: two heads form as the toy trains.

    python tests/tools/make_gif.py

Each frame is the toy model as it was after so many steps (notebooks/toy_snapshots;
the last is the model that comes with the package). Nothing is drawn between them.
"""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.patches import FancyArrowPatch

import bert_np
from bert_np.plotting.colours import SERIES
from bert_np.tree import map_leaves

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
TEXT = "anna has a red ball and a blue hat . the hat is [MASK] ."
LOOKERS = ("red", "blue", "[MASK]")
STEPS = [50, 100, 200, 300, 400, 600, 800, 1000, 1200, 1400, 1600, 4600]
FIRST, SECOND = SERIES[1:3]  # a colour for each head
FRAMES_PER_SECOND, HOLD = 1.5, 5  # the last frame stays for HOLD frames


def load_snapshot(step, toy):
    """Return the toy's parameters as they were after so many steps."""
    path = NOTEBOOKS / "toy_snapshots" / f"step_{step:05}.npz"
    if not path.exists():
        return toy
    with np.load(path) as file:
        return map_leaves(lambda name, _: file[name].astype(np.float32), toy)


def measure(params, config, tokenizer):
    """Return the tokens, two maps and the probabilities of the guesses."""
    batch = tokenizer.encode_batch([TEXT])
    tokens = batch.tokens[0]
    out = bert_np.bert(**batch.inputs, params=params, config=config)
    maps = [out["attention_probs"][layer][0, 3] for layer in (1, 2)]
    guesses = bert_np.fill_mask(TEXT, params, config, tokenizer, top_k=5)[0]
    return tokens, maps, guesses


def draw_frame(figure, step, tokens, maps, guesses):
    """Draw the sentence, where its words look, and the guess for the blank."""
    figure.clear()
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, 800), ylim=(400, 0))
    ax.axis("off")
    ax.text(24, 34, "Nobody told it where to look", fontsize=15, weight="bold")
    ax.text(776, 34, f"step {step:,} of training", fontsize=15, ha="right")
    places = place_words(figure, ax, tokens[1:-1])
    for word in LOOKERS:
        draw_arcs(ax, places, maps[0][tokens.index(word), 1:-1], word, FIRST, -1)
    draw_arcs(ax, places, maps[1][tokens.index("[MASK]"), 1:-1], "[MASK]", SECOND, 1)
    first, second = "where red, blue and [MASK] look", "where [MASK] looks"
    ax.text(24, 68, f"layer 1, head 3: {first}", color=FIRST, fontsize=12)
    ax.text(24, 344, f"layer 2, head 3: {second}", color=SECOND, fontsize=12)
    draw_guesses(ax, guesses)


def place_words(figure, ax, words):
    """Write the sentence in one line; return the middle of each word."""
    x, middles, renderer = 24, [], figure.canvas.get_renderer()
    for word in words:
        weight = "bold" if word in LOOKERS else "normal"
        text = ax.text(x, 180, word, fontsize=15, weight=weight, va="center")
        width = text.get_window_extent(renderer).width * 800 / figure.bbox.width
        middles.append((word, x + width / 2))
        x += width + 15
    return middles


def draw_arcs(ax, places, row, word, colour, side):
    """Draw an arc from a word to each that it looks at, as thick as it looks."""
    start = dict(places)[word]
    for (_, end), p in zip(places, row):
        if p < 0.04 or end == start:
            continue
        bend = side * math.copysign(0.55 - abs(end - start) / 2000, end - start)
        arc = FancyArrowPatch(
            (start, 180 + side * 12),
            (end, 180 + side * 12),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>,head_length=5,head_width=3",
            linewidth=0.5 + 4 * p,
            color=colour,
            alpha=0.15 + 0.85 * p,
        )
        ax.add_patch(arc)


def draw_guesses(ax, guesses):
    """Draw a bar for each of the words that the model finds likeliest."""
    ax.text(770, 316, "its guess for [MASK]", ha="right", fontsize=12)
    for n, (word, p) in enumerate(guesses[:3]):
        y = 340 + 21 * n
        right = word == "blue"
        ax.barh(y, 170 * p, 15, left=530, color="black" if right else "0.65")
        ax.text(
            522,
            y,
            word,
            fontsize=11,
            ha="right",
            va="center",
            weight=("normal", "bold")[right],
        )
        ax.text(536 + 170 * p, y, f"{p:.2f}", va="center", fontsize=11)


def main():
    """Write notebooks/images/a_head_forms.gif."""
    plt.switch_backend("agg")
    toy, config, tokenizer = bert_np.load_pretrained("toy")
    figure = plt.figure(figsize=(8, 4), dpi=100, facecolor="white")
    path = NOTEBOOKS / "images" / "a_head_forms.gif"
    writer = PillowWriter(fps=FRAMES_PER_SECOND)
    with writer.saving(figure, path, dpi=100):
        for step in STEPS:
            found = measure(load_snapshot(step, toy), config, tokenizer)
            draw_frame(figure, step, *found)
            for _ in range(HOLD if step == STEPS[-1] else 1):
                writer.grab_frame()
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
