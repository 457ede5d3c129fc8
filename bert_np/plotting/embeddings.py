"""How a token's vector is made: word + position + segment, normalised."""

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.attention_maps import span
from bert_np.plotting.drawing import draw_signed, write_labels, write_values
from bert_np.plotting.figure import AXIS_SIZE, finish, new_figure
from bert_np.plotting.labels import LABEL_SIZE, token_labels, widest
from bert_np.plotting.preparation import check_numbers, check_rows

OUTPUT = "output = LayerNorm of the sum"
BEYOND = "the largest 0.5 % of the values have the colours of the ends"


def plot_embedding_sum(
    word, position, segment, output, tokens, *, decimals=2, title=None
):
    """Draw the three vectors of each token, their sum and the output.

    Each strip has a row for each token and a column for each of its
    numbers. The first four strips share one scale. With more than 1,000
    numbers in a strip, the scale ends where 0.5 % of them exceed it.

    Parameters
    ----------
    word, position, segment : arrays of shape (T, H)
        Of one sentence, such as trace["embeddings"]["word"][0]; the
        trace holds position without a batch axis. A single row, of
        shape (1, H), stands for all tokens.
    output : array of shape (T, H)
        The sum after LayerNorm.
    tokens : list of T str
    decimals : int
        Digits after the point where the cells have room for numbers.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    BertError
    """
    parts, tokens = check_parts(word, position, segment, output, tokens)
    labels = token_labels(tokens)
    height = min(1.9, max(0.5, 0.2 * len(tokens)))
    width = min(9.0, max(4.0, 0.5 * parts["word"].shape[1]))
    figure = new_figure(
        width + widest(labels) + 1.6,
        5 * (height + 0.32) + 0.4,
        title,
        [BEYOND] if many(parts["word"]) else [],
    )
    axes = figure.subplots(5, 1)
    cell = height / len(tokens), width / parts["word"].shape[1]
    limits = [common_limit(list(parts.values())[:4])] * 4
    limits.append(common_limit([parts[OUTPUT]]))
    for ax, (name, values), limit in zip(axes, parts.items(), limits):
        write_values(draw_signed(ax, values, limit), values, cell, decimals)
        ax.set_title(name, fontsize=AXIS_SIZE, loc="left")
        write_labels(ax.yaxis, labels, height)
        ax.set_xticks([])
    for group in (list(axes[:4]), [axes[4]]):
        bar = figure.colorbar(
            group[0].images[0],
            ax=group,
            extend="both" if many(parts["word"]) else "neither",
            aspect=len(group) * height / 0.15,
        )
        bar.ax.tick_params(labelsize=LABEL_SIZE)
        bar.ax.locator_params(nbins=3 if len(group) == 1 else 5)
    axes[4].set_xlabel(
        f"the {parts['word'].shape[1]} numbers of each vector", fontsize=AXIS_SIZE
    )
    return finish(axes[0], describe_sum(parts, tokens))


def check_parts(word, position, segment, output, tokens):
    """Give {strip: (T, H) array} in the order of drawing, and the tokens."""
    word = check_numbers("word", word, "(T, H)")
    tokens = check_rows("word", word, tokens)
    given = {"position": position, "segment": segment, "output": output}
    for name, values in given.items():
        values = check_numbers(name, values, "(T, H)")
        if values.shape not in (word.shape, (1, word.shape[1])):
            raise BertError(
                f"{name} has shape {values.shape}, expected that of word, {word.shape}"
            )
        given[name] = np.broadcast_to(values, word.shape)
    total = word + given["position"] + given["segment"]
    return {
        "word": word,
        "+ position": given["position"],
        "+ segment": given["segment"],
        "= sum": total,
        OUTPUT: given["output"],
    }, tokens


def many(values):
    """Whether there are so many numbers that a few may leave the scale."""
    return values.size > 1000


def common_limit(arrays):
    """Give the end of a scale for arrays: the largest of their values.

    Of many values it is the one that 0.5 % exceed: a few numbers of a
    trained model are so large that beside them the others look equal.
    """
    sizes = np.abs(np.concatenate([values.ravel() for values in arrays]))
    return float(np.quantile(sizes, 0.995) if many(arrays[0]) else sizes.max())


def describe_sum(parts, tokens):
    """Say how large the parts are, as the mean length of their vectors."""
    *summands, total, output = (
        np.linalg.norm(values, axis=1).mean() for values in parts.values()
    )
    return (
        f"Embeddings of {span(tokens)}: vectors of {parts['word'].shape[1]} "
        f"numbers whose mean lengths are word {summands[0]:.2f}, position "
        f"{summands[1]:.2f}, segment {summands[2]:.2f}, sum {total:.2f}, and "
        f"{output:.2f} after LayerNorm."
    )
