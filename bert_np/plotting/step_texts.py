"""Stages of the forward pass as plain text, and their numbers as text."""

import math
import textwrap

import numpy as np

from bert_np.plotting.labels import fill_columns, terminal_columns

WIDTH = 100  # columns of a terminal
INDENT = 4
SMALL = 64  # numbers that are shown in full
WIDEST_MAP = 12  # tokens up to which text shows a whole map
FEW_ROWS, FEW_COLUMNS = 4, 6  # of a larger array


def trace_place(path):
    """Write where a stage lies in the trace.

    >>> print(trace_place("layers.0.output"))
    trace["layers"][0]["output"]
    """
    if path == "input_ids":
        return path
    keys = (key if key.isdigit() else f'"{key}"' for key in path.split("."))
    return "trace" + "".join(f"[{key}]" for key in keys)


def number_format(values):
    """Choose one format for all numbers: four digits for the largest.

    >>> number_format(np.array([-12.345, 0.1])), number_format(np.array([3]))
    ('.2f', 'd')
    """
    if values.dtype.kind in "iu":
        return "d"
    top = np.abs(values, where=np.isfinite(values), out=np.zeros(values.shape)).max()
    if top >= 1e6:
        return ".3e"
    return f".{min(6, max(0, 3 - math.floor(math.log10(max(top, 1e-9)))))}f"


def number_texts(stage):
    """Return the numbers of a stage as strings, one list for each row."""
    form = number_format(stage.values[~stage.masked]) if not stage.masked.all() else "d"
    return [
        ["masked" if hidden else format(value, form) for value, hidden in zip(*row)]
        for row in zip(stage.values.tolist(), stage.masked)
    ]


def summary(stage):
    """Describe the range and the mean of the numbers that are not masked."""
    values = stage.values[~stage.masked]
    if values.size == 0:
        return "every key is masked"
    form = number_format(values)
    with np.errstate(invalid="ignore"):  # inf - inf
        mean = values.mean(dtype=np.float64)
    ends = f"min {format(values.min(), form)}, max {format(values.max(), form)}"
    return ends + f", mean {mean:.3g}" * (form != "d")


def stage_text(stage):
    """Write a stage as plain text of at most 100 columns."""
    head = f"{stage.number}. {stage.name} · {stage.part} · {trace_place(stage.path)}"
    if stage.folded:
        lines = [f"{stage.sentence} Output {stage.shape}: {summary(stage)}"]
    else:
        lines = [stage.sentence, stage.equation, stage.shape, summary(stage)]
    lines += [*stage.notes, *stage.remarks, stage.repeats]
    body = [wrapped for line in lines for wrapped in wrap(line)]
    if not stage.repeats and not stage.folded:
        body += number_table(stage)
    return "\n".join([head, *(" " * INDENT + line for line in body)])


def wrap(line):
    """Break a line that is wider than the page; some letters take two columns."""
    is_wide = terminal_columns(line) > len(line)
    return textwrap.wrap(
        line, (WIDTH - INDENT) // (1 + is_wide), subsequent_indent="  "
    )


def number_table(stage):
    """Write the numbers with their names: all of them, or the first few."""
    rows, columns = stage.values.shape
    if rows * columns > SMALL and max(rows, columns) > WIDEST_MAP:
        rows, columns = min(rows, FEW_ROWS), min(columns, FEW_COLUMNS)
    cells = [row[:columns] for row in number_texts(stage)[:rows]]
    more = " …" * (columns < stage.values.shape[1])
    side = max(map(terminal_columns, stage.rows))
    cell = 2 + max(len(text) for row in cells for text in row)
    step = max(1, (WIDTH - INDENT - side - len(more)) // cell)
    lines = []
    for start in range(0, columns, step):
        part = slice(start, min(columns, start + step))
        names = "".join(heading(name, cell) for name in stage.columns[part])
        lines.append(" " * side + names)
        for name, row in zip(stage.rows, cells):
            numbers = "".join(x.rjust(cell) for x in row[part])
            lines.append(fill_columns(name, side) + numbers + more)
    left = len(stage.values) - rows
    return lines + [f"… and {left} more row{'s' * (left > 1)}"] * (left > 0)


def heading(name, cell):
    """Write the name of a column, cut to fit: its number comes first."""
    kept = name
    while terminal_columns(kept) > cell - 1:
        kept = kept[:-1]
    return fill_columns(kept, cell, right=True)
