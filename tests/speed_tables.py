"""What the README says of the speed, from the figures of benchmarks/speed.py.

`python tests/make_readme.py` writes it.
"""

import json
from pathlib import Path

import numpy as np

FIGURES = Path(__file__).resolve().parent / "benchmarks" / "speed.json"
PEER = "transformers, eager"
SIDES = {"transformers, sdpa": "sdpa", "ONNX Runtime": "ONNX Runtime",
         "plain": "plain", "fast": "fast", "products": "products alone"}
WITHOUT = {"plain, without maps": "plain", "fast, without maps": "fast",
           "transformers, eager, without maps": "eager"}


def read_figures():
    """Part -> its figures, and the machine they were measured on."""
    return json.loads(FIGURES.read_text("utf-8"))


def speed_text(known):
    """All tables and sentences, as Markdown."""
    return "\n\n".join([times_text(known), shares_text(known), memory_text(known),
                        start_text(known), curves_text(known)])


def called(workload):
    """(8, 128) for "8x128"."""
    shape, _, rest = workload.partition(" ")
    return f"({', '.join(shape.split('x'))}){' ' + rest if rest else ''}"


def times_text(known):
    """Ratios of time, and the lower bound of the machine."""
    machine, figures = known["times"]["machine"], known["times"]["figures"]
    bounds = known["limits"]["figures"]
    lines = [
        f"Time of a BERT-Base forward pass, float32, {machine['processors']} cores "
        f"({machine['BLAS of NumPy'][0]}), beside HuggingFace's BertModel with eager "
        f"attention (transformers {machine['transformers']}, torch {machine['torch']}) "
        "in the same run: the median ratio, and its quartiles. Less is faster. "
        "\"plain\" is `bert`, \"fast\" is `fast_bert`; both return all attention maps, "
        "as \"eager\" and ONNX Runtime do and sdpa cannot.",
        "",
        "| (B, T) | eager | " + " | ".join(SIDES.values()) + " | bound |",
        "|---|---:|" + "---:|" * (len(SIDES) + 1),
    ]
    for workload, sides in figures.items():
        eager = sides[PEER]["seconds"]
        cells = [cell(sides[side]) for side in SIDES]
        bound = bounds["seconds"][workload] / eager
        lines.append(f"| {called(workload)} | 1 ({eager * 1e3:.0f} ms) | "
                     + " | ".join(cells) + f" | {bound:.2f} |")
    at = figures["8x128"]
    products = at["products"]["seconds"] / at["fast"]["seconds"]
    return "\n".join([*lines, "", (
        "\"padded\" has texts of 8 to 128 tokens. \"products alone\" are the fast "
        f"path's matrix products, in its threads; at (8, 128) they take "
        f"{products:.0%} of its time. The bound is what the machine's own products "
        f"({bounds['products, GFLOP/s']} GFLOP/s, measured on large matrices) and "
        f"memory ({bounds['memory, GB/s']} GB/s) allow.")])


def cell(found):
    """A ratio and its quartiles."""
    low, high = found["quartiles"]
    return f"{found['ratio']:.2f} ({low:.2f}–{high:.2f})"


def shares_text(known):
    """Which steps take the plain path's time."""
    figures = known["shares"]["figures"]
    steps = list(figures["8x128"])
    names = {"attention": "q kᵀ and probs v"}
    lines = ["Where the time of \"plain\" goes:", "",
             "| (B, T) | " + " | ".join(names.get(s, s) for s in steps) + " |",
             "|---|" + "---:|" * len(steps)]
    lines += [f"| {called(workload)} | "
              + " | ".join(f"{found[step]:.0%}" for step in steps) + " |"
              for workload, found in figures.items()]
    at = figures["1x512"]
    return "\n".join([*lines, "", (
        "NumPy computes exp and tanh on one core; the products use all. In a long text "
        f"softmax and GELU take {at['softmax'] + at['GELU']:.0%} of the time.")])


def memory_text(known):
    """The highest memory of a process during a forward pass."""
    figures = known["memory"]["figures"]
    sides = {PEER: "eager", **SIDES}
    del sides["products"]
    lines = ["Highest memory of the whole process during the pass, in MB (the weights "
             "are 438 MB), with all maps returned and, in brackets, without:", "",
             "| (B, T) | " + " | ".join(sides.values()) + " |",
             "|---|" + "---:|" * len(sides)]
    for workload, found in figures.items():
        cells = []
        for side in sides:
            alone = found.get(f"{side}, without maps")
            cells.append(f"{found[side]:,}" + (f" ({alone:,})" if alone else ""))
        lines.append(f"| {called(workload)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def start_text(known):
    """From a new process to a picture; what an import costs."""
    start, imports = known["start"]["figures"], known["import"]["figures"]
    ours, theirs = start["bert_np"], start["transformers and matplotlib"]
    drawing = start["drawing alone"]
    more = 1e3 * imports["bert_np after numpy"]
    return (f"From a new process to the saved picture of one sentence's attention "
            f"(import, load MiniLM, encode, run, draw): {ours:.2f} s. With "
            f"transformers and matplotlib: {theirs:.2f} s, {theirs / ours:.1f} times "
            f"as long. To import matplotlib, draw and save the same picture without a "
            f"model takes {drawing:.2f} s. `import bert_np` takes {more:.0f} ms more "
            f"than `import numpy`.")


def curves_text(known):
    """The fitted cost of one text of T tokens."""
    fits = known["curves"]["figures"]["fits of 1, T, T²"]
    parts = []
    for side, name in (("plain", "`bert`"), ("fast", "`fast_bert`"), (PEER, "eager")):
        a, b, c = fits[side]["milliseconds"]
        parts.append(f"{name} {a:.3g} + {b:.3g} T + {c:.2e} T² "
                     f"(within {fits[side]['largest error']:.0%})")
    return ("One text of T tokens takes, fitted, in milliseconds: " + "; ".join(parts)
            + ".\n\n![Milliseconds against the length of one text](notebooks/images/"
            "cost_length.png)\n\n![Milliseconds a text against the size of the "
            "batch](notebooks/images/cost_batch.png)")


def curve_figures(known):
    """File name -> matplotlib Figure."""
    from bert_np.plotting import plot_curves

    seconds = known["curves"]["figures"]["seconds"]
    figures = {}
    for name, chosen, axis, xlabel, ylabel, title in (
        ("cost_length", "1x", 1, "tokens T of one text", "milliseconds",
         "The cost of a text grows with its length, and a little faster"),
        ("cost_batch", "x32", 0, "texts of 32 tokens in the batch",
         "milliseconds a text", "In a batch a text costs less"),
    ):
        shapes = {w: list(map(int, w.split("x"))) for w in seconds}
        kept = [w for w, (B, T) in shapes.items()
                if (B == 1 if chosen == "1x" else T == 32)]
        x = [shapes[w][axis] for w in kept]
        order = np.argsort(x)
        curves = {side: [1e3 * seconds[kept[i]][side]["seconds"] / shapes[kept[i]][0]
                         for i in order] for side in ("plain", "fast", PEER)}
        figures[name] = plot_curves(curves, [x[i] for i in order], xlabel=xlabel,
                                    ylabel=ylabel, title=title)
    return figures
