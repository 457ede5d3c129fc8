"""From a new process to the saved picture of one sentence's attention.

    python tests/tools/benchmarks/quick_start.py bert_np
    python tests/tools/benchmarks/quick_start.py transformers
    python tests/tools/benchmarks/quick_start.py drawing

The first two load MiniLM, encode the sentence, run the model and save one head
of it as PNG in the working folder; the third only draws and saves, without a
model. `speed.py` times them as whole processes.
"""

import sys

SENTENCE = "The cat sat because it was tired."
LAYER, HEAD = 3, 1


def with_bert_np():
    """With this library."""
    import bert_np
    from bert_np.plotting import plot_attention

    params, config, tokenizer = bert_np.load_pretrained("all-MiniLM-L6-v2")
    batch = tokenizer.encode_batch([SENTENCE])
    out = bert_np.bert(batch.input_ids, params, config)
    probs = out["attention_probs"][LAYER][0, HEAD]
    plot_attention(probs, batch.tokens[0]).savefig("bert_np.png", dpi=100)


def drawing_alone():
    """The picture of bert_np from made-up numbers: what matplotlib takes."""
    import numpy as np

    from bert_np.plotting import plot_attention

    tokens = ["[CLS]", *SENTENCE.lower().rstrip(".").split(), ".", "[SEP]"]
    probs = np.full((len(tokens), len(tokens)), 1 / len(tokens))
    plot_attention(probs, tokens).savefig("drawing.png", dpi=100)


def with_transformers():
    """With what one would otherwise install; no row sums, no description."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import torch
    from transformers import AutoModel, AutoTokenizer

    from bert_np.files.pretrained import fetch

    folder = fetch("all-MiniLM-L6-v2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    batch = tokenizer(SENTENCE, return_tensors="pt")
    with torch.inference_mode():
        probs = model(**batch, output_attentions=True).attentions[LAYER][0, HEAD]
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    figure, ax = plt.subplots()
    ax.imshow(probs, vmin=0, vmax=1)
    ax.set_xticks(range(len(tokens)), labels=tokens, rotation=90)
    ax.set_yticks(range(len(tokens)), labels=tokens)
    for i, row in enumerate(probs):
        for k, p in enumerate(row):
            ax.text(k, i, f"{p:.2f}", ha="center", va="center", color="w", size=7)
    figure.savefig("transformers.png", dpi=100)


if __name__ == "__main__":
    {
        "bert_np": with_bert_np,
        "transformers": with_transformers,
        "drawing": drawing_alone,
    }[sys.argv[1]]()
