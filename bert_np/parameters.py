"""The parameter tree, stated once, and everything derived from it."""

import math

import numpy as np

from bert_np.config import require_config
from bert_np.errors import BertError, require_bool, short
from bert_np.tree import is_array, leaves, map_leaves

PRETRAINING_HEADS = ("mlm", "nsp")
HEADS = (*PRETRAINING_HEADS, "sequence", "token", "span")
MOST_LAYERS = 10_000  # a tree of many more would fill the memory by itself
MOST_VALUES = 10**11  # 400 GB in float32


def parameter_shapes(config, heads=False):
    """State the shape of every parameter, in a dict nested like params.

    ``W`` is always (in, out), so that code reads ``x @ W + b``.

    Parameters
    ----------
    config : BertConfig
    heads : bool or list of str
        Which heads to include, of "mlm", "nsp", "sequence", "token" and
        "span". True: the two of pre-training, "mlm" and "nsp". "sequence"
        and "token" have a column for each of config.labels.

    Returns
    -------
    dict
        The parameter tree with a tuple in place of each array.

    Source: Devlin et al. 2018, section 3; the tree's names are ours.
    """
    require_config(config)
    heads = _names_of(heads)
    if config.num_hidden_layers > MOST_LAYERS:
        found = short(config.num_hidden_layers)
        raise BertError(f"num_hidden_layers = {found}, allowed here: 1..{MOST_LAYERS}")
    H, F, V = config.hidden_size, config.intermediate_size, config.vocab_size
    shapes = {
        "embeddings": {
            "word": (V, H),
            "position": (config.max_position_embeddings, H),
            "segment": (config.type_vocab_size, H),
            "norm": _norm(H),
        },
        "layers": [_layer(H, F) for _ in range(config.num_hidden_layers)],
        "pooler": _linear(H, H),
    }
    return shapes | {n: part for n, part in _heads(config).items() if n in heads}


def _heads(config):
    H, V, K = config.hidden_size, config.vocab_size, len(config.labels)
    # The MLM head's output matrix is embeddings.word, not counted twice, unless the
    # two are not tied: then it has a row for each token, as embeddings.word has.
    untied = {} if config.tie_word_embeddings else {"decoder": (V, H)}
    mlm = {"transform": _linear(H, H), "norm": _norm(H), "bias": (V,)}
    return {
        "mlm": mlm | untied,
        "nsp": _linear(H, 2),
        "sequence": _linear(H, K),
        "token": _linear(H, K),
        "span": _linear(H, 2),
    }


def _names_of(heads):
    """Return the names of the heads that are asked for."""
    if isinstance(heads, bool):
        return PRETRAINING_HEADS if heads else ()
    known = isinstance(heads, (list, tuple)) and all(
        type(name) is str for name in heads
    )
    if not known or not set(heads) <= {*HEADS}:
        allowed = f"True, False or a list of {', '.join(HEADS)}"
        raise BertError(f"heads = {short(heads)}, allowed: {allowed}")
    return heads


def _layer(H, F):
    return {
        "attention": {
            "query": _linear(H, H),
            "key": _linear(H, H),
            "value": _linear(H, H),
            "output": _linear(H, H),
        },
        "attention_norm": _norm(H),
        "ffn": {"inner": _linear(H, F), "outer": _linear(F, H)},
        "ffn_norm": _norm(H),
    }


def _linear(size_in, size_out):
    return {"W": (size_in, size_out), "b": (size_out,)}


def _norm(H):
    return {"gamma": (H,), "beta": (H,)}


def init_params(config, rng, heads=False, dtype=np.float32):
    """Draw random parameters for a BERT that has not been trained.

    Matrices are drawn from N(0, initializer_range²); biases and beta are
    0, gamma is 1. The attention of such a model is nearly uniform.

    Parameters
    ----------
    config : BertConfig
    rng : numpy.random.Generator
    heads : bool or list of str
        Which heads to include; see parameter_shapes.
    dtype : numpy.float32 or numpy.float64

    Returns
    -------
    dict
        The parameter tree, as parameter_shapes states it.

    Source: Devlin et al. 2018. The normal distribution is HuggingFace's;
    the original code truncates it at two standard deviations.
    """
    if not isinstance(rng, np.random.Generator):
        raise BertError(
            f"rng is {type(rng).__name__}, allowed: numpy.random.Generator, "
            "as np.random.default_rng(0) makes it"
        )
    if not isinstance(dtype, (type, str, np.dtype)) or dtype not in (
        np.float32,
        np.float64,
    ):
        raise BertError(f"dtype = {short(dtype)}, allowed: np.float32, np.float64")
    shapes = parameter_shapes(config, heads)
    if _count(shapes) > MOST_VALUES:
        _refuse_sizes(config)

    def draw(path, shape):
        name = path.rsplit(".", 1)[-1]
        if name in ("b", "beta", "bias"):
            return np.zeros(shape, dtype)
        if name == "gamma":
            return np.ones(shape, dtype)
        weights = rng.standard_normal(shape, dtype)
        weights *= config.initializer_range
        return weights

    keep_freed_memory()
    try:
        return map_leaves(draw, shapes)
    except MemoryError:
        _refuse_sizes(config)


def keep_freed_memory():
    """Ask the allocator of Linux to keep memory that is freed.

    An equation makes an array for each of its steps. If their memory goes
    back to the system, it has to be mapped and cleared again for the next
    one, which takes a tenth of the time of a large forward pass. Freeing
    32 MB once is the signal to keep it. On other systems nothing changes.
    """
    np.empty(2**25 - 2**13, np.uint8)


def _refuse_sizes(config):
    sizes = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "max_position_embeddings",
    )
    found = ", ".join(f"{name} = {short(getattr(config, name), 20)}" for name in sizes)
    raise BertError(f"config asks for more parameters than fit into memory: {found}")


def count_params(params):
    """Count the trainable values of a parameter tree.

    A BERT-Base has 109,482,240; with both pre-training heads 110,106,428.
    """
    for path, array in leaves(params):
        if not is_array(array):
            kind = type(array).__name__
            raise BertError(f"params: {path or 'it'} is {kind}, allowed: numpy.ndarray")
    return sum(array.size for _, array in leaves(params))


def check_params(params, config):
    """Check that every parameter is there, with its shape and dtype.

    The pooler and the heads may be absent. All arrays must share one
    dtype, float32 or float64. The values themselves are not checked.

    Raises
    ------
    BertError
        Naming the first array that is missing, unknown or wrong.
    """
    require_config(config)
    if not isinstance(params, dict):
        raise BertError(f"params is {type(params).__name__}, allowed: a nested dict")
    if "layers" not in params:
        raise BertError(f"params: missing ['layers'], found {short(list(params))}")
    _check_length(params["layers"], config.num_hidden_layers, "params.layers")
    expected = parameter_shapes(config, heads=HEADS)
    for part in ("pooler", *HEADS):
        if part not in params:
            del expected[part]
    _check_tree(params, expected, "params")
    _check_one_dtype(params)


def _check_tree(tree, expected, path):
    if isinstance(expected, tuple):
        _check_array(tree, expected, path)
    elif isinstance(expected, dict):
        _check_keys(tree, expected, path)
        for key, branch in expected.items():
            _check_tree(tree[key], branch, f"{path}.{key}")
    else:
        for i, branch in enumerate(expected):
            _check_tree(tree[i], branch, f"{path}.{i}")


def _check_keys(tree, expected, path):
    if not isinstance(tree, dict):
        raise BertError(f"{path} is {type(tree).__name__}, allowed: a dict")
    missing = [key for key in expected if key not in tree]
    unknown = [key for key in tree if key not in expected]
    if missing or unknown:
        missing, unknown = (short(n) if n else "nothing" for n in (missing, unknown))
        raise BertError(
            f"{path}: missing {missing}, unknown {unknown}, allowed: {list(expected)}"
        )


def _check_length(layers, length, path):
    """Check this first: a size in a config must not make a large tree."""
    if not isinstance(layers, list):
        raise BertError(f"{path} is {type(layers).__name__}, allowed: a list")
    if len(layers) != length:
        raise BertError(
            f"{path} has {len(layers)} entries, allowed: {short(length)} "
            "(config.num_hidden_layers)"
        )


def _check_array(array, shape, path):
    if not is_array(array):
        raise BertError(f"{path} is {type(array).__name__}, allowed: numpy.ndarray")
    if array.shape != shape:
        transposed = array.ndim == 2 and array.shape[::-1] == shape
        hint = ". It looks transposed: W is (in, out)" if transposed else ""
        raise BertError(f"{path} has shape {array.shape}, allowed: {shape}{hint}")
    if array.dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise BertError(f"{path} is {array.dtype}, allowed: float32 or float64")


def _check_one_dtype(params):
    dtypes = {array.dtype.newbyteorder("="): path for path, array in leaves(params)}
    if len(dtypes) > 1:
        found = ", ".join(f"{path} is {dtype}" for dtype, path in dtypes.items())
        raise BertError(f"params: {found}; all arrays share one dtype")


def parameter_ledger(config, heads=True):
    """List where the parameters sit: (part, how it is counted, count).

    The total of embeddings, layers and pooler is the model that the
    paper calls 110M. The layers alone are the "85 million" often quoted
    for it; the difference is the embeddings and the pooler, not the MLM
    head, whose output matrix is the word table.

    Parameters
    ----------
    config : BertConfig
    heads : bool
        Whether to add rows for the two pre-training heads.

    Returns
    -------
    list of (str, str, int)
    """
    require_bool("heads", heads)
    shapes = parameter_shapes(config, heads=True)
    L = config.num_hidden_layers
    layer = _count(shapes["layers"][0])
    rows = [
        (
            f"embeddings: {name}",
            _formula(shapes["embeddings"][name]),
            _count(shapes["embeddings"][name]),
        )
        for name in shapes["embeddings"]
    ]
    rows += [
        (f"one layer: {name}", _formula(part), _count(part))
        for name, part in shapes["layers"][0].items()
    ]
    rows += [
        (f"all {L} layers", f"{L} × {layer:,}", L * layer),
        ("pooler", _formula(shapes["pooler"]), _count(shapes["pooler"])),
        (
            "model",
            "embeddings + layers + pooler",
            _count({k: shapes[k] for k in ("embeddings", "layers", "pooler")}),
        ),
    ]
    if heads:
        rows += [
            ("MLM head", _formula(shapes["mlm"]), _count(shapes["mlm"])),
            ("NSP head", _formula(shapes["nsp"]), _count(shapes["nsp"])),
            ("model with both heads", "model + MLM head + NSP head", _count(shapes)),
        ]
    return rows


def _count(shapes):
    return sum(math.prod(shape) for _, shape in leaves(shapes))


def _formula(shapes):
    """Write a count as a sum, equal terms joined: "4×768×768 + 4×768"."""
    terms = ["×".join(map(str, shape)) for _, shape in leaves(shapes)]
    counts = {term: terms.count(term) for term in terms}
    return " + ".join(t if n == 1 else f"{n}×{t}" for t, n in counts.items())


def format_ledger(rows):
    """Write the rows of parameter_ledger as a Markdown table."""
    lines = ["| part | counted as | parameters | of the model |", "|---|---|---:|---:|"]
    try:
        whole = next(count for part, _, count in rows if part == "model")
        for part, how, count in rows:
            lines.append(f"| {part} | {how} | {count:,} | {count / whole:.1%} |")
    except (TypeError, ValueError, StopIteration, ZeroDivisionError):
        found = short(rows)
        raise BertError(f"rows = {found}, allowed: those of parameter_ledger") from None
    return "\n".join(lines)
