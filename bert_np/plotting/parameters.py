"""Where the parameters of a model sit."""

import numpy as np

from bert_np.config import BertConfig
from bert_np.errors import BertError
from bert_np.parameters import parameter_ledger
from bert_np.plotting.bars import bars_height, draw_bars
from bert_np.plotting.drawing import axes_to_draw_on
from bert_np.plotting.figure import finish


def plot_parameters(config, *, heads=False, title=None, ax=None):
    """Draw a bar for each part of a model, as long as it has parameters.

    Parameters
    ----------
    config : BertConfig, or the rows of `bert_np.parameter_ledger`
    heads : bool
        With bars for the two pre-training heads. Their share, too, is
        that of the model without them.
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    parts, model = count_parts(config, heads)
    counts = np.array(list(parts.values()))
    texts = [f"{count:,}  {count / model:.1%}" for count in counts]
    ax = axes_to_draw_on(ax, 8.0, bars_height(len(parts)), title)
    draw_bars(
        ax,
        list(parts),
        counts / 1e6,
        texts,
        f"million parameters, of {model:,} in the model",
    )
    return finish(ax, describe_parameters(parts, model))


def count_parts(config, heads):
    """Give {part: parameters} and the parameters of the model."""
    rows = parameter_ledger(config) if isinstance(config, BertConfig) else config
    try:
        ledger = {part: int(count) for part, _, count in rows}
        layers = next(part for part in ledger if part.startswith("all "))
        one = sum(n for part, n in ledger.items() if part.startswith("one layer: "))
        number = ledger[layers] // one
        model = ledger["model"]
    except (TypeError, ValueError, KeyError, StopIteration, ZeroDivisionError):
        raise BertError(
            f"config is a {type(config).__name__}, expected a BertConfig "
            "or the rows of parameter_ledger(config)"
        ) from None
    parts = {}
    for part, count in ledger.items():
        kind, _, name = part.partition(": ")
        if kind == "embeddings":
            parts[f"embeddings: {name}"] = count
        elif kind == "one layer":
            shown = name.replace("_", " ").replace("ffn", "feed-forward")
            parts[f"{number} layers: {shown}"] = number * count
        elif part == "pooler" or (heads and part in ("MLM head", "NSP head")):
            parts[part] = count
    return parts, model


def describe_parameters(parts, model):
    """Say how many there are and which part has most."""
    most = max(parts, key=parts.get)
    embeddings = sum(n for part, n in parts.items() if part.startswith("embeddings"))
    return (
        f"Where the {model:,} parameters sit: most in {most}, {parts[most]:,} "
        f"({parts[most] / model:.0%}); the embeddings hold {embeddings:,} "
        f"({embeddings / model:.0%})."
    )
