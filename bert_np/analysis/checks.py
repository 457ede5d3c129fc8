"""What the measures share: checks of maps, masks and traces; row sums."""

import numpy as np

from bert_np.analysis.corpora import Sentence
from bert_np.errors import BertError, short

TOLERANCE = 1e-4  # by how much a probability may lie outside 0..1


def check_maps(probs, attention_mask):
    """Return the maps as floats, and which keys are real, for each row."""
    probs = as_maps(probs)
    if probs.ndim < 2 or probs.shape[-1] != probs.shape[-2] or probs.size == 0:
        raise BertError(f"probs has shape {probs.shape}, allowed: (..., T, T)")
    wrong = ~((probs >= -TOLERANCE) & (probs <= 1 + TOLERANCE))
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise BertError(
            f"probs[{', '.join(map(str, place))}] = {probs[place]:.6g}, "
            "allowed: 0..1 (probabilities after the softmax)"
        )
    return probs, check_mask(attention_mask, probs.shape)


def check_model_maps(probs, attention_mask):
    """Check the maps of a whole model, as check_maps does for any."""
    probs, real = check_maps(probs, attention_mask)
    if probs.ndim not in (4, 5):
        raise BertError(
            f"probs has shape {probs.shape}, allowed: (L, A, T, T) or (L, B, A, T, T)"
        )
    if probs.ndim == 4 and real.ndim > 1:
        raise BertError(
            f"attention_mask has two axes, allowed with probs of shape "
            f"{probs.shape}, (L, A, T, T): shape (T,)"
        )
    return probs, real


def as_maps(probs):
    """Return attention as floats; if there is none, say how to keep it."""
    listed = isinstance(probs, (list, tuple)) and all(p is None for p in probs)
    if probs is None or listed:
        raise BertError(
            f"probs = {short(probs, 30)}: no attention was kept; bert keeps it with "
            "return_attention=True, transformers with output_attentions=True and a "
            "model loaded with attn_implementation='eager'"
        )
    return as_floats("probs", probs)


def as_floats(name, values):
    """Return an array of real numbers as floats, float32 at least."""
    if np.ma.is_masked(values):  # NumPy would read the values under the mask
        raise BertError(f"{name} is a masked array, allowed: a plain array")
    try:
        if isinstance(values, (list, tuple)):
            shapes = [np.shape(value) for value in values]
            if len(set(shapes)) > 1:
                raise ValueError(f"its entries have shapes {shapes}")
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BertError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise BertError(f"{name} has dtype {array.dtype}, allowed: real numbers")
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def check_mask(attention_mask, shape):
    """Return which keys are real: (T,), or (B, 1, T) for (..., B, A, T, T)."""
    T = shape[-1]
    if attention_mask is None:
        return np.ones(T, bool)
    mask = as_floats("attention_mask", attention_mask)
    allowed = [(T,)] if len(shape) < 4 else [(T,), (shape[-4], T)]
    if mask.shape not in allowed:
        raise BertError(
            f"attention_mask has shape {mask.shape}, allowed: "
            f"{' or '.join(map(str, allowed))} for maps of shape {shape}"
        )
    _refuse_not_binary("attention_mask", mask)
    return mask.astype(bool) if mask.ndim == 1 else mask.astype(bool)[:, None]


def require_layers(params):
    """Refuse what is not a tree of parameters with layers."""
    if not isinstance(params, dict) or not isinstance(params.get("layers"), list):
        raise BertError(
            f"params is {type(params).__name__}, allowed: the tree of "
            "parameters, a dict with a list of layers"
        )


def require_real(mask):
    """Refuse a mask without any real token."""
    if not mask.any():
        raise BertError("attention_mask has no 1: there is no real token to measure")


def for_all_heads(real):
    """Return the mask for maps without the axis of heads: (T,) or (B, T)."""
    return real if real.ndim == 1 else real[:, 0]


def check_positions(positions, shape):
    """Return the positions as bool, or refuse what is not 0 or 1."""
    asked = as_floats("positions", positions)
    if asked.shape != shape:
        raise BertError(
            f"positions has shape {asked.shape}, allowed: {shape}, "
            "the shape of input_ids"
        )
    _refuse_not_binary("positions", asked)
    if not asked.any():
        raise BertError("positions has no 1: there is no prediction to compare")
    return asked.astype(bool)


def _refuse_not_binary(name, array):
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise BertError(
            f"{name}[{', '.join(map(str, place))}] = {array[place]:.6g}, "
            "allowed: 0 or 1"
        )


def check_tokens(tokens, probs):
    """Return the tokens as an array (T,), or (B, 1, T), that fits the maps."""
    T, shape = probs.shape[-1], probs.shape
    if isinstance(tokens, (str, bytes)) or not np.iterable(tokens):
        raise BertError(f"tokens is {type(tokens).__name__}, allowed: a list of str")
    tokens = list(tokens)
    nested = len(tokens) > 0 and not isinstance(tokens[0], str)
    rows = (
        [list(row) if np.iterable(row) else [row] for row in tokens]
        if nested
        else [list(tokens)]
    )
    for row in rows:
        for token in row:
            if not isinstance(token, str):
                kind = type(token).__name__
                raise BertError(f"tokens holds {kind}, allowed: a list of str")
        if len(row) != T:
            raise BertError(
                f"tokens: a sentence has {len(row)} entries, allowed: "
                f"{T}, for probs of shape {shape}"
            )
    if nested and (len(shape) < 4 or shape[-4] != len(rows)):
        raise BertError(
            f"tokens has {len(rows)} lists, allowed with probs of shape "
            f"{shape}: one list of {T} str, or one for each sentence B "
            "of (..., B, A, T, T)"
        )
    return np.array(rows)[:, None] if nested else np.array(rows[0])


def stage_of(trace, *path):
    """Return one stage of a trace, or refuse a trace without it."""
    stage = trace
    for name in path:
        try:
            stage = stage[name]
        except (KeyError, IndexError, TypeError):
            raise BertError(
                f"trace has no {'.'.join(map(str, path))}; "
                "give the dict that bert filled"
            ) from None
    return stage


def hide_masked(values, real):
    """Set the rows and columns of masked tokens to 0."""
    if real.all():
        return values
    return values * (real[..., :, None] & real[..., None, :])


def divide_by_sums(maps):
    """Divide each row by its sum; a row of zeros stays."""
    sums = maps.sum(axis=-1, keepdims=True)
    return np.divide(maps, sums, out=np.zeros_like(maps), where=sums > 0)


def report_tenths(report, before, done, total, what):
    """Report each tenth of something that has been reached, such as texts."""
    if report is not None and done * 10 // total > before * 10 // total:
        report(f"{what} {done:,}/{total:,}")


def check_sentences(sentences, least=1):
    """Refuse what is not a list of sentences whose heads are among their words."""
    if not isinstance(sentences, (list, tuple)) or isinstance(sentences, Sentence):
        raise BertError(f"sentences is {short(sentences)}, allowed: a list of Sentence")
    if len(sentences) < least:
        raise BertError(
            f"sentences has {len(sentences)} entries, allowed: {least} or more"
        )
    for number, sentence in enumerate(sentences):
        name = f"sentences[{number}]"
        if not isinstance(sentence, Sentence):
            raise BertError(
                f"{name} is {type(sentence).__name__}, allowed: Sentence, as "
                "read_treebank returns them"
            )
        _check_sentence(sentence, name)


def _check_sentence(sentence, name):
    columns = sentence._asdict()
    columns.pop("source")
    for field, values in columns.items():
        kind = (int, np.integer) if field == "heads" else str
        if not isinstance(values, (list, tuple)) or len(values) == 0:
            raise BertError(f"{name}.{field} is {short(values)}, allowed: a tuple")
        for place, value in enumerate(values):
            if not isinstance(value, kind) or isinstance(value, bool):
                wanted = "int" if field == "heads" else "str"
                raise BertError(
                    f"{name}.{field}[{place}] = {short(value)}, allowed: {wanted}"
                )
    lengths = {field: len(values) for field, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise BertError(f"{name} has fields of different lengths: {lengths}")
    for place, head in enumerate(sentence.heads):
        if not -1 <= head < len(sentence.words) or head == place:
            raise BertError(
                f"{name}.heads[{place}] = {short(head)}, allowed: "
                f"-1..{len(sentence.words) - 1}, but not {place}, the word itself"
            )


def require_generator(rng):
    """Refuse what is not a random generator of NumPy."""
    if not isinstance(rng, np.random.Generator):
        raise BertError(
            f"rng is {type(rng).__name__}, allowed: numpy.random.Generator, "
            "as np.random.default_rng(0) makes it"
        )
