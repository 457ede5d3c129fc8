"""A cell for live classes: type a sentence, choose heads, mask a token."""

import math
import uuid
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short
from bert_np.files.pretrained import load_pretrained
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits
from bert_np.model import bert
from bert_np.plotting.checks import check_integer
from bert_np.plotting.html import escape_formulas, join, tag
from bert_np.plotting.labels import token_text
from bert_np.plotting.viewer import MOST_VALUES, attention_viewer

RUN = "Run this cell for a text box and a button for each token."
TOP = 5  # guesses for each masked token
WRAPPED = {"flex_flow": "row wrap"}


class View(NamedTuple):
    """What the cell shows for one text."""

    tokens: list  # with [MASK] in place of a masked one
    viewer: object
    guesses: list  # one sentence for each [MASK]


class Controls(NamedTuple):
    """The widgets of the cell; they hold what the model is asked."""

    box: object
    text: object
    tokens: object  # holds a toggle button for each token: pressed is masked
    message: object
    guesses: object


def explore(text="The cat sat because it was tired.", model="all-MiniLM-L6-v2"):
    """Show the attention of a sentence with controls to play with.

    A text box, a button for each token that masks it, and the viewer of
    all layers and heads (see `attention_viewer`). If the model has an
    MLM head, its guesses for the masked tokens are shown. A new text
    runs the model; layers, heads and the choice to hide [CLS] and [SEP]
    change in the page at once, and stay for the next text.

    Parameters
    ----------
    text : str
        The sentence to begin with.
    model : str or (params, config, tokenizer)
        A name or folder that `load_pretrained` knows, or what it returns.

    Returns
    -------
    AttentionViewer or None
        None in a notebook, where the cell shows itself. Without
        ipywidgets, or outside a notebook: the viewer of this text, after
        one line that says so.
    """
    model = load_model(model)
    missing = missing_front_end()
    if missing:
        print(f"{missing}, so here is the viewer without its text box")
        return view_of(text, model).viewer
    from IPython.display import DisplayHandle, display

    controls, handle = new_widgets(text), DisplayHandle()
    display({**controls.box._repr_mimebundle_(), "text/plain": RUN}, raw=True)
    handle.display({"text/plain": "no picture yet"}, raw=True)
    keep = f"explore{uuid.uuid4().hex}"

    def show(viewer):
        html = replace(viewer, keep=keep)._repr_html_()
        handle.update({"text/html": html, "text/plain": repr(viewer)}, raw=True)

    connect(controls, model, show)


def load_model(model):
    """Return (params, config, tokenizer) for a name or for those three."""
    if isinstance(model, str):
        model = load_pretrained(model)
    if not isinstance(model, tuple) or len(model) != 3:
        raise BertError(
            f"model is a {type(model).__name__}, allowed: a name, "
            "or (params, config, tokenizer)"
        )
    if model[2] is None:
        raise BertError("model: its tokenizer is None, which names the words")
    return model


def missing_front_end():
    """Return what is missing for the controls, or an empty text."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return "ipywidgets is not installed"
    kernel = getattr(get_ipython(), "kernel", None)
    return "" if kernel is not None else "this is not a notebook"


def view_of(text, model, masked=()):
    """Run the model on a text with some tokens masked.

    Parameters
    ----------
    text : str
    model : (params, config, tokenizer)
    masked : list of int
        The positions of the tokens to replace by [MASK].

    Returns
    -------
    View
    """
    params, config, tokenizer = model
    encoding = encode_sentence(text, model)
    ids, tokens = encoding.input_ids.copy(), list(encoding.tokens)
    for position in masked:
        check_integer("masked", position, 0, len(ids) - 1)
        ids[position] = tokenizer.mask_token_id
        tokens[position] = tokenizer.tokens[tokenizer.mask_token_id]
    out = bert(ids[None], params, config, attention_mask=np.ones_like(ids)[None])
    viewer = attention_viewer([probs[0] for probs in out["attention_probs"]], tokens)
    guesses = guess_masked(out["last_hidden_state"], ids, encoding.tokens, model)
    return View(tokens, viewer, guesses)


def encode_sentence(text, model):
    """Return the encoding of a text that the model and a page can take."""
    _, config, tokenizer = model
    if not isinstance(text, str) or not text.strip():
        raise BertError(f"text = {short(text)}: type a sentence")
    encoding = tokenizer.encode(text)
    length, limit = len(encoding.tokens), config.max_position_embeddings
    if length > limit:
        raise BertError(f"text has {length} tokens, allowed: at most {limit}")
    heads = config.num_hidden_layers * config.num_attention_heads
    room = math.isqrt(MOST_VALUES // heads)
    if length > room:
        raise BertError(
            f"text has {length} tokens; the {heads} heads of this model fit one page "
            f"up to {room}: take a shorter text, or attention_viewer with layers="
        )
    return encoding


def guess_masked(hidden, ids, tokens, model):
    """For each [MASK], name the words that the MLM head finds likeliest."""
    params, config, tokenizer = model
    places = np.flatnonzero(ids == tokenizer.mask_token_id)
    if places.size == 0:
        return []
    if "mlm" not in params:
        return ["This model has no MLM head, so it makes no guesses."]
    logits = masked_lm_logits(hidden[:, places], params, config)[0]
    probs = softmax(logits[:, : tokenizer.vocab_size].astype(np.float64))
    sentences = []
    for place, row in zip(places, probs):
        best = np.argsort(-row, kind="stable")[:TOP]
        words = [f"{token_text(tokenizer.tokens[i])} {row[i]:.2f}" for i in best]
        sentences.append(f"{place} {token_text(tokens[place])}: {', '.join(words)}")
    return sentences


def connect(controls, model, show):
    """Let the widgets respond to each other, and show the first text.

    Parameters
    ----------
    controls : Controls
    model : (params, config, tokenizer)
    show : function
        Called with each new viewer.
    """

    def rerun(_=None):
        update_cell(controls, model, show)

    def retype(_=None):
        renew_buttons(controls, model, rerun)
        rerun()

    controls.text.observe(retype, "value")
    retype()


def new_widgets(text):
    """Lay out the widgets of the cell."""
    import ipywidgets as w

    typed = {"description": "sentence", "continuous_update": False}
    sentence = w.Text(text, **typed, layout={"width": "95%"})
    hint, tokens = w.Label("Click a token to mask it:"), w.HBox(layout=WRAPPED)
    below = message, guesses = w.HTML(), w.HTML()
    box = w.VBox([sentence, hint, tokens, *below])
    return Controls(box, sentence, tokens, message, guesses)


def renew_buttons(controls, model, rerun):
    """Make a button for each token; an unusable text leaves the old ones."""
    import ipywidgets as w

    try:
        tokens = encode_sentence(controls.text.value, model).tokens
    except BertError:
        return
    buttons = [
        w.ToggleButton(
            description=token_text(token),
            disabled=token in model[2].special[2:4],
            tooltip=f"mask token {i}",
            layout={"width": "auto"},
        )
        for i, token in enumerate(tokens)
    ]
    for button in buttons:
        button.observe(rerun, "value")
    controls.tokens.children = buttons


def update_cell(controls, model, show):
    """Bring viewer, guesses and message up to date.

    What cannot be run leaves a message, and the last viewer.
    """
    buttons = controls.tokens.children
    for button in buttons:
        button.button_style = "warning" if button.value else ""
    masked = [i for i, button in enumerate(buttons) if button.value]
    try:
        view = view_of(controls.text.value, model, masked)
    except BertError as error:
        controls.message.value = tag("b", escape_formulas(error))
        return
    show(view.viewer)
    controls.message.value = ""
    controls.guesses.value = join(map(escape_formulas, view.guesses), tag("br"))
