"""Make the parts of the README that come from the code.

    python tests/make_readme.py

Rewrites the parameter ledger, the table of differences, the toy model's
figures and those of the speed, and draws the pictures.
tests/test_readme.py fails where the README is not what this would write.
"""

import json
import re
from pathlib import Path

import numpy as np
from golden_values import largest_differences, minilm_results, tiny
from speed_tables import curve_figures, read_figures, speed_text

from bert_np import BertConfig, bert, format_ledger, load_pretrained, parameter_ledger
from bert_np.files.pretrained import PACKAGED

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PICTURES = ROOT / "notebooks" / "images"
LEDGER = re.compile(r"(<!-- ledger.*?-->\n).*?(<!-- end of ledger -->)", re.DOTALL)


def with_ledger(text):
    """The README's text with the ledger of BERT-Base in its place."""
    table = format_ledger(parameter_ledger(BertConfig.base()))
    return LEDGER.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text)


AGREEMENT = re.compile(
    r"(<!-- agreement.*?-->\n).*?(<!-- end of agreement -->)", re.DOTALL
)


def agreement_table():
    """The largest differences from HuggingFace's stored results."""
    rows = [
        ("2 layers, random, float64", *tiny("f64_", np.float64)[1:]),
        ("2 layers, random, float32", *tiny("f32_", np.float32)[1:]),
        (
            "MiniLM, 6 layers, float32",
            *minilm_results(*load_pretrained("all-MiniLM-L6-v2")[:2])[2:],
        ),
    ]
    lines = [
        "| checkpoint | hidden states, pooled, logits | attention |",
        "|---|---:|---:|",
    ]
    for name, found, expected in rows:
        other, attention = largest_differences(found, expected)
        lines.append(f"| {name} | {other:.0e} | {attention:.0e} |")
    return "\n".join(lines)


def with_agreement(text):
    """The README's text with the table of differences in its place."""
    return AGREEMENT.sub(lambda m: f"{m[1]}{agreement_table()}\n{m[2]}", text)


TOY = re.compile(r"(<!-- toy.*?-->\n).*?(<!-- end of toy -->)", re.DOTALL)
ASKED = {
    "agreement": "the cat that the dogs chase [is] tired",
    "pronoun": "john lost the key . [he] was sad",
    "copy": "anna has a red ball . the ball is [red]",
    "binding": "anna has a red ball and a blue hat . the hat is [blue]",
    "order": "the dog chased the cat . who ran away ? the [cat]",
}


def toy_table():
    """What the toy model's report says, as Markdown."""
    report = json.loads((PACKAGED["toy"] / "report.json").read_text("utf-8"))
    figures = report["held_out"]
    lines = ["| skill | such as | right |", "|---|---|---:|"]
    lines += [
        f"| {skill} | {text} | {figures[skill]:.1%} |" for skill, text in ASKED.items()
    ]
    pairs, best = figures["next sentence"], figures["next sentence, best possible"]
    lines += [
        f"| next sentence | best possible {best:.1%} | {pairs:.1%} |",
        "",
        f"It has {report['parameters']:,} parameters. Its predictions are "
        f"{figures['divergence']:.2f} nats from the exact ones (mean KL divergence). "
        f"Training took {report['seconds'] / 60:.0f} minutes on two cores and "
        f"{report['peak_memory_mb']} MB of memory.",
    ]
    return "\n".join(lines)


def with_toy(text):
    """The README's text with the toy model's figures in their place."""
    return TOY.sub(lambda m: f"{m[1]}{toy_table()}\n{m[2]}", text)


SPEED = re.compile(r"(<!-- speed.*?-->\n).*?(<!-- end of speed -->)", re.DOTALL)


def with_speed(text):
    """The README's text with the benchmark's tables in their place."""
    return SPEED.sub(lambda m: f"{m[1]}{speed_text(read_figures())}\n{m[2]}", text)


def draw_pictures():
    """One head of MiniLM in numbers, thumbnails of all of them, the cost curves."""
    from bert_np.plotting import plot_attention, plot_model

    params, config, tokenizer = load_pretrained("all-MiniLM-L6-v2")
    batch = tokenizer.encode_batch(["The cat sat because it was tired."])
    out = bert(batch.input_ids, params, config)
    maps = [probs[0] for probs in out["attention_probs"]]
    PICTURES.mkdir(exist_ok=True)
    one = plot_attention(maps[3][1], batch.tokens[0], title="MiniLM, layer 3, head 1")
    one.savefig(PICTURES / "one_head.png", dpi=100)
    all_heads = plot_model(maps, batch.tokens[0], title="MiniLM, every head")
    all_heads.savefig(PICTURES / "all_heads.png", dpi=100)
    for name, figure in curve_figures(read_figures()).items():
        figure.savefig(PICTURES / f"{name}.png", dpi=100)


if __name__ == "__main__":
    text = README.read_text("utf-8")
    for rewrite in (with_ledger, with_agreement, with_toy, with_speed):
        text = rewrite(text)
    README.write_text(text, "utf-8")
    draw_pictures()
