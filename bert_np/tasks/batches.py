"""Many texts through the model: encoded, sorted by length, in batches."""

import warnings

from bert_np.errors import BertError, short
from bert_np.fast import fast_bert, prepare
from bert_np.inputs import check_texts
from bert_np.model import bert
from bert_np.tokenizer import check_text, pad_rows

MOST_TOKENS = 4096  # per batch, padding counted, so that its arrays stay small


def require_count(name, value, most=None):
    """Refuse what is not an int from 1 on, up to `most` if that is given."""
    if type(value) is not int or value < 1 or (most is not None and value > most):
        allowed = "an int >= 1" if most is None else f"1..{most}"
        raise BertError(f"{name} = {short(value)}, allowed: {allowed}")


def require_list(name, value, what):
    """Refuse what is not a list; a single text belongs in one."""
    if not isinstance(value, (list, tuple)):
        raise BertError(f"{name} is {type(value).__name__}, allowed: a list of {what}")


def encode_text(text, name, config, tokenizer, max_length=None):
    """Encode a text, or a pair (str, str); messages call it `name`."""
    pair = text if isinstance(text, tuple) and len(text) == 2 else (text,)
    for i, part in enumerate(pair):
        check_text(part, name if len(pair) == 1 else f"{name}[{i}]")
    try:
        encoding = tokenizer.encode(*pair, max_length=max_length)
    except BertError as error:
        raise BertError(f"{name}: {error}") from None
    advice = f"max_length={config.max_position_embeddings} cuts it"
    check_texts(encoding, [name], config, advice)
    return encoding


def encode_texts(texts, config, tokenizer, max_length=None):
    """Encode the texts or pairs of a list, called texts[i] in messages."""
    return [
        encode_text(text, f"texts[{i}]", config, tokenizer, max_length)
        for i, text in enumerate(texts)
    ]


def cut_batches(lengths, size=None):
    """Cut texts into batches of similar length, the longest first.

    Parameters
    ----------
    lengths : list of int
        The number of tokens of each text.
    size : int, optional
        How many texts make a batch. None: as many as make MOST_TOKENS.

    Returns
    -------
    list of list of int
        The places in `lengths` of the texts of each batch.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batches, start = [], 0
    while start < len(order):
        count = size or max(1, MOST_TOKENS // lengths[order[start]])
        batches.append(order[start : start + count])
        start += count
    return batches


def run_batches(encodings, params, config, tokenizer, size=None):
    """Run the model on texts, batch by batch: yield (places, batch, out).

    `places` are those of the batch's rows among the encodings, so that the
    caller can put results in order; `out` is what bert returns. A single
    text takes the plain path: it has no padding to leave out, and
    arranging the parameters for the fast path would cost more than it saves.
    """
    if len(encodings) == 1:
        run, model = bert, {"params": params}
    else:
        run, model = fast_bert, {"prepared": prepare(params, config)}
    lengths = [len(encoding.tokens) for encoding in encodings]
    for places in with_progress(cut_batches(lengths, size), "batches"):
        rows = [encodings[i] for i in places]
        batch = pad_rows(rows, lengths[places[0]], tokenizer.pad_token_id)
        options = {"config": config, "return_attention": False}
        yield places, batch, run(**batch.inputs, **model, **options)


def with_progress(items, unit):
    """Go through the items, with a progress bar if there are ten or more.

    tqdm would warn in WebAssembly, where it cannot start the thread that
    watches over its bars, although the bars work without it.
    """
    from tqdm import TqdmMonitorWarning
    from tqdm.auto import tqdm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmMonitorWarning)
        return tqdm(items, unit=unit, disable=len(items) < 10)


def check_window(room, overlap):
    """Return the overlap of windows; refuse one without room or step."""
    if room < 1:
        raise BertError(
            f"no room for a text: {1 - room} positions too few for [CLS], [SEP] and "
            "one piece of it"
        )
    if overlap is None:
        return min(128, room // 2)
    if type(overlap) is not int or not 0 <= overlap < room:
        raise BertError(
            f"overlap = {short(overlap)}, allowed: 0..{room - 1}, less than the "
            f"{room} pieces of a window"
        )
    return overlap


def windows(length, room, overlap):
    """Cover `length` pieces by windows (start, end) of at most `room`.

    Neighbours share `overlap` pieces, so that what one window cuts apart
    is whole in the next.

    >>> windows(10, 6, 2)
    [(0, 6), (4, 10)]
    """
    starts = range(0, max(length - overlap, 1), room - overlap)
    return [(start, min(start + room, length)) for start in starts]
