"""A cell for live classes: type a sentence, choose a head, mask a token."""

from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short
from bert_np.files.pretrained import load_pretrained
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits
from bert_np.model import bert
from bert_np.plotting.attention_maps import plot_attention
from bert_np.plotting.checks import check_integer
from bert_np.plotting.figure import in_words
from bert_np.plotting.html import escape_formulas, join, tag
from bert_np.plotting.labels import token_text

RUN = "Run this cell for the controls."
TOP = 5  # guesses for each masked token
SPECIAL = [
    ("show", "show"),
    ("hide", "hide"),
    ("hide, rows renormalised", "renormalise"),
]
WRAPPED = {"flex_flow": "row wrap"}


class View(NamedTuple):
    """What the cell shows for one setting of its controls."""

    tokens: list  # with [MASK] in place of a masked one
    figure: object
    guesses: list  # one sentence for each [MASK]


class Controls(NamedTuple):
    """The widgets of the cell; they hold all of its state."""

    box: object
    text: object
    layer: object
    head: object
    special: object
    tokens: object  # holds a toggle button for each token: pressed is masked
    message: object
    guesses: object
    words: object  # what the picture shows, in a sentence


def explore(text="The cat sat because it was tired.", model="all-MiniLM-L6-v2"):
    """Show the attention of a sentence with controls to play with.

    A text box, sliders for layer and head, a button for each token that
    masks it, and the choice to hide [CLS] and [SEP]. If the model has an
    MLM head, its guesses for the masked tokens are shown.

    Parameters
    ----------
    text : str
        The sentence to begin with.
    model : str or (params, config, tokenizer)
        A name or folder that `load_pretrained` knows, or what it returns.

    Returns
    -------
    Figure or None
        None in a notebook, where the cell shows itself. Without
        ipywidgets, or outside a notebook: the figure of layer 0, head 0,
        after one line that says so.
    """
    model = load_model(model)
    missing = missing_front_end()
    if missing:
        print(f"{missing}: layer 0, head 0 without controls")
        return view_of(text, model).figure
    from IPython.display import DisplayHandle, display

    controls, handle = new_widgets(text, model[1]), DisplayHandle()
    display({**controls.box._repr_mimebundle_(), "text/plain": RUN}, raw=True)
    handle.display({"text/plain": "no picture yet"}, raw=True)

    def draw(figure):
        shown = {"image/png": figure._repr_png_(), "text/plain": figure.description}
        handle.update(shown, raw=True)

    connect(controls, model, draw)


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
        raise BertError("model: its tokenizer is None, explore needs one")
    return model


def missing_front_end():
    """Return what is missing for the controls, or an empty text."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return "ipywidgets is not installed"
    kernel = getattr(get_ipython(), "kernel", None)
    return "" if kernel is not None else "no notebook here"


def view_of(text, model, *, layer=0, head=0, masked=(), special="show"):
    """Run the model on a text with some tokens masked, and draw one head.

    Parameters
    ----------
    text : str
    model : (params, config, tokenizer)
    layer, head : int
    masked : list of int
        The positions of the tokens to replace by [MASK].
    special : "show", "hide" or "renormalise"
        What happens to [CLS] and [SEP].

    Returns
    -------
    View
    """
    params, config, tokenizer = model
    encoding = encode_sentence(text, model)
    check_integer("layer", layer, 0, config.num_hidden_layers - 1)
    check_integer("head", head, 0, config.num_attention_heads - 1)
    ids, tokens = encoding.input_ids.copy(), list(encoding.tokens)
    for position in masked:
        check_integer("masked", position, 0, len(ids) - 1)
        ids[position] = tokenizer.mask_token_id
        tokens[position] = tokenizer.tokens[tokenizer.mask_token_id]
    out = bert(ids[None], params, config, attention_mask=np.ones_like(ids)[None])
    probs = out["attention_probs"][layer][0, head]
    title = f"layer {layer}, head {head}"
    figure = plot_attention(probs, tokens, special=special, title=title)
    guesses = guess_masked(out["last_hidden_state"], ids, encoding.tokens, model)
    return View(tokens, figure, guesses)


def encode_sentence(text, model):
    """Return the encoding of a text that the model can take."""
    _, config, tokenizer = model
    if not isinstance(text, str) or not text.strip():
        raise BertError(f"text = {short(text)}: type a sentence")
    encoding = tokenizer.encode(text)
    length, limit = len(encoding.tokens), config.max_position_embeddings
    if length > limit:
        raise BertError(f"text has {length} tokens, allowed: at most {limit}")
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


def connect(controls, model, draw):
    """Let the widgets respond to each other, and draw for the first time.

    Parameters
    ----------
    controls : Controls
    model : (params, config, tokenizer)
    draw : function
        Called with each new figure.
    """

    def redraw(_=None):
        update_cell(controls, model, draw)

    def retype(_=None):
        renew_buttons(controls, model, redraw)
        redraw()

    controls.text.observe(retype, "value")
    for control in (controls.layer, controls.head, controls.special):
        control.observe(redraw, "value")
    retype()


def new_widgets(text, config):
    """Lay out the widgets of the cell."""
    import ipywidgets as w

    typed = {"description": "sentence", "continuous_update": False}
    sentence = w.Text(text, **typed, layout={"width": "95%"})
    layer = w.IntSlider(0, 0, config.num_hidden_layers - 1, description="layer")
    head = w.IntSlider(0, 0, config.num_attention_heads - 1, description="head")
    special = w.Dropdown(options=SPECIAL, description="[CLS], [SEP]")
    choices = w.HBox([layer, head, special], layout=WRAPPED)
    hint = w.Label("Click a token to mask it:")
    tokens = w.HBox(layout=WRAPPED)
    below = message, guesses, words = w.HTML(), w.HTML(), w.HTML()
    box = w.VBox([sentence, choices, hint, tokens, *below])
    return Controls(
        box, sentence, layer, head, special, tokens, message, guesses, words
    )


def renew_buttons(controls, model, redraw):
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
        button.observe(redraw, "value")
    controls.tokens.children = buttons


def update_cell(controls, model, draw):
    """Bring picture, guesses and message up to date.

    What cannot be drawn leaves a message, and the last picture.
    """
    buttons = controls.tokens.children
    for button in buttons:
        button.button_style = "warning" if button.value else ""
    choices = {x: getattr(controls, x).value for x in ("layer", "head", "special")}
    masked = [i for i, button in enumerate(buttons) if button.value]
    try:
        view = view_of(controls.text.value, model, masked=masked, **choices)
    except BertError as error:
        controls.message.value = tag("b", escape_formulas(error))
        return
    draw(view.figure)
    controls.message.value = ""
    controls.guesses.value = join(map(escape_formulas, view.guesses), tag("br"))
    controls.words.value = in_words(view.figure.description)
