"""Rewrite what the READMEs show of the code, and the front page's picture of one head.

    python tests/tools/make_tables.py

The parameter ledger, the toy model's figures and the largest differences from
HuggingFace's stored results go between their markers in the folders' READMEs.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from golden_values import largest_differences, minilm_results, tiny  # noqa: E402

from bert_np import (  # noqa: E402
    BertConfig,
    analysis,
    bert,
    format_ledger,
    load_pretrained,
    parameter_ledger,
)
from bert_np.analysis.minimal_pairs import TEMPLATES  # noqa: E402
from bert_np.files.pretrained import PACKAGED  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RELATIONS = ["obj", "case", "det", "xcomp", "cop", "aux", "nsubj", "nsubj:pass"]
RELATIONS += ["amod", "flat"]
PICTURES = ROOT / "notebooks" / "images"
SKILLS = {
    "agreement": "the cat that the dogs chase [is] tired",
    "pronoun": "john lost the key . [he] was sad",
    "copy": "anna has a red ball . the ball is [red]",
    "binding": "anna has a red ball and a blue hat . the hat is [blue]",
    "order": "the dog chased the cat . who ran away ? the [cat]",
}


def ledger_table():
    """Return where the parameters of BERT-Base sit."""
    return format_ledger(parameter_ledger(BertConfig.base()))


def agreement_table(minilm):
    """Return the largest differences from HuggingFace's stored results."""
    rows = {
        "2 layers, random, float64": tiny("f64_", np.float64)[1:],
        "2 layers, random, float32": tiny("f32_", np.float32)[1:],
        "MiniLM, 6 layers, float32": minilm_results(*minilm[:2])[2:],
    }
    lines = ["| checkpoint | hidden states, pooled, logits | attention |"]
    lines.append("|---|---:|---:|")
    for name, (found, expected) in rows.items():
        other, attention = largest_differences(found, expected)
        lines.append(f"| {name} | {other:.0e} | {attention:.0e} |")
    return "\n".join(lines)


def toy_table():
    """Return what the toy model's report says."""
    report = json.loads((PACKAGED["toy"] / "report.json").read_text("utf-8"))
    found = report["held_out"]
    pairs, best = found["next sentence"], found["next sentence, best possible"]
    lines = ["| skill | such as | right |", "|---|---|---:|"]
    lines += [
        f"| {name} | {text} | {found[name]:.1%} |" for name, text in SKILLS.items()
    ]
    lines += [f"| next sentence | best possible {best:.1%} | {pairs:.1%} |", ""]
    lines.append(
        f"It has {report['parameters']:,} parameters. Its predictions are "
        f"{found['divergence']:.2f} nats from the exact ones (mean KL divergence). "
        f"Training took {report['seconds'] / 60:.0f} minutes on "
        f"{report['processors']} processor{'s' * (report['processors'] > 1)} and "
        f"{report['peak_memory_mb']} MB of memory."
    )
    return "\n".join(lines)


def seeds_table():
    """Return how the recipe of the toy model did from each seed."""
    results = json.loads((PACKAGED["toy"] / "seeds.json").read_text("utf-8"))
    columns = "seed, every skill there at step, last step, lowest of the five skills, "
    columns += "next sentence, best possible, nats"
    lines = [f"| {columns.replace(', ', ' | ')} |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for result in results:
        found, (there, last) = result["held_out"], result["phases_ended"]
        error = f", GELU off by {result.get('gelu_error')}" * ("gelu_error" in result)
        lowest = min(found[skill] for skill in SKILLS)
        lines.append(
            f"| {result['seed']}{error} | {there:,} | {last:,} "
            f"| {lowest:.1%} | {found['next sentence']:.1%} "
            f"| {found['next sentence, best possible']:.1%} "
            f"| {found['divergence']:.2f} |"
        )
    return "\n".join(lines)


def circuits_table():
    """Return which words carry the question in the model of each seed."""
    results = json.loads((PACKAGED["toy"] / "circuits.json").read_text("utf-8"))
    lines = ["| model | what is asked about | which thing has which colour |"]
    lines.append("|---|---|---|")
    for result in results:
        name = result["model"].replace("_", " ")
        lines.append(
            f"| {name} | {result['path']['asks']} | {result['path']['swapped']} |"
        )
    return "\n".join(lines)


def relations_table(minilm):
    """Return which heads of MiniLM find the relations that gain most, or nothing."""
    sentences, rng = analysis.read_treebank(), np.random.default_rng(0)
    scores = analysis.score_relations(sentences, *minilm, rng=rng, relations=RELATIONS)
    return analysis.format_relations(scores)


def pairs_table(minilm):
    """Return how three heads of MiniLM fare in each set of minimal pairs."""
    heads = [(1, 3), (2, 4), (3, 1)]
    lines = ["| set | pairs | luckiest of 72 |" + "".join(f" {h} |" for h in heads)]
    lines.append("|---|---:|---:|" + "---:|" * len(heads))
    for name, arguments in TEMPLATES.items():
        scores = analysis.score_pairs(analysis.make_pairs(**arguments), *minilm)
        cells = [name, len(scores.margins), scores.best_by_luck]
        cells += [scores.outcomes[2, layer, head] for layer, head in heads]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def write_table(path, name, table):
    """Put a table between its markers."""
    pattern = rf"(<!-- {name}.*?-->\n).*?(<!-- end -->)"
    text = re.sub(
        pattern, lambda m: f"{m[1]}{table}\n{m[2]}", path.read_text("utf-8"), flags=re.S
    )
    path.write_text(text, "utf-8")


def draw_picture(minilm):
    """Draw one head of MiniLM in numbers."""
    from bert_np.plotting import plot_attention

    params, config, tokenizer = minilm
    batch = tokenizer.encode_batch(["The cat sat because it was tired."])
    out = bert(**batch.inputs, params=params, config=config)
    probs = out["attention_probs"][3][0, 1]
    one = plot_attention(probs, batch.tokens[0], title="MiniLM, layer 3, head 1")
    one.savefig(PICTURES / "one_head.png", dpi=100)


if __name__ == "__main__":
    minilm = load_pretrained("all-MiniLM-L6-v2")
    write_table(ROOT / "bert_np" / "README.md", "ledger", ledger_table())
    write_table(ROOT / "bert_np" / "training" / "README.md", "toy", toy_table())
    write_table(ROOT / "bert_np" / "training" / "README.md", "seeds", seeds_table())
    write_table(
        ROOT / "bert_np" / "training" / "README.md", "circuits", circuits_table()
    )
    write_table(ROOT / "tests" / "README.md", "agreement", agreement_table(minilm))
    found = ROOT / "bert_np" / "analysis" / "README.md"
    write_table(found, "relations", relations_table(minilm))
    write_table(found, "pairs", pairs_table(minilm))
    draw_picture(minilm)
