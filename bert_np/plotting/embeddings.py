"""How a token's vector is made: word + position + segment, normalised."""

import numpy as np

from bert_np.errors import BertError
from bert_np.plotting.attention_maps import span
from bert_np.plotting.checks import check_integer, check_numbers, list_texts
from bert_np.plotting.drawing import draw_signed, write_labels, write_values
from bert_np.plotting.figure import AXIS_SIZE, finish, in_own_style, new_figure
from bert_np.plotting.labels import LABEL_SIZE, token_labels, widest

OUTPUT = "output = LayerNorm of the sum"
BEYOND = "the largest 0.5 % of the values have the end colours of the scale"


@in_own_style
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
        Decimal places if the cells have room for numbers.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_integer("decimals", decimals, 1, 6)
    strips, tokens = check_strips(word, position, segment, output, tokens)
    labels, (rows, columns) = token_labels(tokens), strips["word"].shape
    height = min(1.9, max(0.5, 0.2 * rows))
    width = min(9.0, max(4.0, 0.5 * columns))
    notes = [BEYOND] if many(strips["word"]) else []
    wide, high = width + widest(labels) + 1.6, 5 * (height + 0.32) + 0.4
    figure = new_figure(wide, high, title, notes)
    axes = figure.subplots(5, 1)
    cell = height / rows, width / columns
    limits = [common_limit(list(strips.values())[:4])] * 4
    limits.append(common_limit([strips[OUTPUT]]))
    for ax, (name, values), limit in zip(axes, strips.items(), limits):
        write_values(draw_signed(ax, values, limit), values, cell, decimals)
        ax.set_title(name, fontsize=AXIS_SIZE, loc="left")
        write_labels(ax.yaxis, labels, height)
        ax.set_xticks([])
    ends = "both" if notes else "neither"
    for group in (list(axes[:4]), [axes[4]]):
        thin = len(group) * height / 0.15
        bar = figure.colorbar(group[0].images[0], ax=group, extend=ends, aspect=thin)
        bar.ax.tick_params(labelsize=LABEL_SIZE)
        bar.ax.locator_params(nbins=3 if len(group) == 1 else 5)
    axes[4].set_xlabel(f"the {columns} numbers of each vector", fontsize=AXIS_SIZE)
    return finish(axes[0], describe_strips(strips, tokens))


def check_strips(word, position, segment, output, tokens):
    """Return {strip: (T, H) array} in the order of drawing, and the tokens."""
    word = check_numbers("word", word, "(T, H)")
    tokens = list_texts("tokens", tokens, len(word), f"row of word, {word.shape}")
    given = {"position": position, "segment": segment, "output": output}
    for name, values in given.items():
        values = check_numbers(name, values, "(T, H)")
        if values.shape not in (word.shape, (1, word.shape[1])):
            raise BertError(
                f"{name} has shape {values.shape}, expected that of word, {word.shape}"
            )
        given[name] = np.broadcast_to(values, word.shape)
    return {
        "word": word,
        "+ position": given["position"],
        "+ segment": given["segment"],
        "= sum": word + given["position"] + given["segment"],
        OUTPUT: given["output"],
    }, tokens


def many(values):
    """Say whether so many numbers are drawn that a few may leave the scale."""
    return values.size > 1000


def common_limit(arrays):
    """Return the end of a scale for arrays: the largest of their values.

    Of many values it is the one that 0.5 % exceed: a few numbers of a
    trained model are so large that beside them the others look equal.
    """
    sizes = np.abs(np.concatenate([values.ravel() for values in arrays]))
    return float(np.quantile(sizes, 0.995) if many(arrays[0]) else sizes.max())


def describe_strips(strips, tokens):
    """Describe how large the vectors are, by their mean lengths."""
    word, position, segment, total, output = (
        f"{np.linalg.norm(values, axis=1).mean():.2f}" for values in strips.values()
    )
    return (
        f"Embeddings of {span(tokens)}: vectors of {strips['word'].shape[1]} "
        f"numbers whose mean lengths are word {word}, position {position}, "
        f"segment {segment}, sum {total}, and {output} after LayerNorm."
    )
