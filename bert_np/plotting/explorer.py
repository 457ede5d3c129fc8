"""A cell for live classes: type a sentence, choose a head, mask a token."""

from typing import NamedTuple

import numpy as np

from bert_np.errors import BertError, short
from bert_np.files.pretrained import load_pretrained
from bert_np.functional import softmax
from bert_np.heads import masked_lm_logits
from bert_np.model import bert
from bert_np.plotting.attention_maps import plot_attention
from bert_np.plotting.figure import in_words
from bert_np.plotting.labels import token_text
from bert_np.plotting.preparation import ENDS
from bert_np.plotting.step_pages import plain

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

    tokens: list  # with [MASK] where one is masked
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
    masks it, and the choice to hide [CLS] and [SEP]. Where the model has
    an MLM head, its guesses for the masked tokens are shown.

    Parameters
    ----------
    text : str
        The sentence to begin with.
    model : str or (params, config, tokenizer)
        A name or folder that `load_pretrained` knows, or what it gives.

    Returns
    -------
    Figure or None
        None in a notebook, where the cell shows itself. Without
        ipywidgets, or outside of a notebook: the figure of layer 0,
        head 0, after one line that says so.

    Raises
    ------
    BertError
        Where the model cannot be loaded, or a figure without controls
        cannot be drawn.
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
    connect(
        controls,
        model,
        lambda figure: handle.update(
            {"image/png": figure._repr_png_(), "text/plain": figure.description},
            raw=True,
        ),
    )


def load_model(model):
    """Give (params, config, tokenizer) for a name or for those three."""
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
    """Say what is missing for controls; an empty text where nothing is."""
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

    Raises
    ------
    BertError
    """
    params, config, tokenizer = model
    encoding = encode(text, model)
    check_choice("layer", layer, config.num_hidden_layers)
    check_choice("head", head, config.num_attention_heads)
    ids, tokens = encoding.input_ids.copy(), list(encoding.tokens)
    for position in masked:
        check_choice("masked", position, len(ids))
        ids[position] = tokenizer.mask_token_id
        tokens[position] = tokenizer.tokens[tokenizer.mask_token_id]
    out = bert(ids[None], params, config, attention_mask=np.ones_like(ids)[None])
    figure = plot_attention(
        out["attention_probs"][layer][0, head],
        tokens,
        special=special,
        title=f"layer {layer}, head {head}",
    )
    guesses = guess(out["last_hidden_state"], ids, encoding.tokens, model)
    return View(tokens, figure, guesses)


def encode(text, model):
    """The ids of a text that the model can take."""
    _, config, tokenizer = model
    if not isinstance(text, str) or not text.strip():
        raise BertError(f"text = {text!r}: type a sentence")
    encoding = tokenizer.encode(text)
    length, limit = len(encoding.tokens), config.max_position_embeddings
    if length > limit:
        raise BertError(f"text has {length} tokens, allowed: at most {limit}")
    return encoding


def check_choice(name, value, size):
    """Refuse a number outside 0..size-1."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value < size:
        raise BertError(f"{name} = {short(value)}, allowed: 0..{size - 1}")


def guess(hidden, ids, tokens, model):
    """For each [MASK] the words that the MLM head finds likeliest."""
    params, config, tokenizer = model
    places = np.flatnonzero(ids == tokenizer.mask_token_id)
    if places.size == 0:
        return []
    if "mlm" not in params:
        return ["This model has no MLM head, so it makes no guesses."]
    logits = masked_lm_logits(hidden[:, places], params, config)[0]
    probs = softmax(logits[:, : tokenizer.vocab_size].astype(np.float64))
    return [
        f"{place} {token_text(tokens[place])}: "
        + ", ".join(
            f"{token_text(tokenizer.tokens[i])} {row[i]:.2f}"
            for i in np.argsort(-row, kind="stable")[:TOP]
        )
        for place, row in zip(places, probs)
    ]


def connect(controls, model, draw):
    """Let the widgets answer each other, and draw for the first time.

    Parameters
    ----------
    controls : Controls
    model : (params, config, tokenizer)
    draw : function
        Called with each new figure.
    """

    def redraw(_=None):
        show(controls, model, draw)

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

    sentence = w.Text(
        text, description="sentence", continuous_update=False, layout={"width": "95%"}
    )
    layer, head = (
        w.IntSlider(0, 0, size - 1, description=name)
        for name, size in (
            ("layer", config.num_hidden_layers),
            ("head", config.num_attention_heads),
        )
    )
    special = w.Dropdown(options=SPECIAL, description="[CLS], [SEP]")
    tokens = w.HBox(layout=WRAPPED)
    message, guesses, words = w.HTML(), w.HTML(), w.HTML()
    box = w.VBox(
        [
            sentence,
            w.HBox([layer, head, special], layout=WRAPPED),
            w.Label("Click a token to mask it:"),
            tokens,
            message,
            guesses,
            words,
        ]
    )
    return Controls(
        box, sentence, layer, head, special, tokens, message, guesses, words
    )


def renew_buttons(controls, model, redraw):
    """Make a button for each token; a text of no use leaves the old ones."""
    import ipywidgets as w

    try:
        tokens = encode(controls.text.value, model).tokens
    except BertError:
        return
    buttons = [
        w.ToggleButton(
            description=token_text(token),
            disabled=token in ENDS,
            tooltip=f"mask token {i}",
            layout={"width": "auto"},
        )
        for i, token in enumerate(tokens)
    ]
    for button in buttons:
        button.observe(redraw, "value")
    controls.tokens.children = buttons


def show(controls, model, draw):
    """Bring picture, guesses and message up to date.

    What cannot be drawn leaves a message, and the last picture.
    """
    masked = [i for i, button in enumerate(controls.tokens.children) if button.value]
    for button in controls.tokens.children:
        button.button_style = "warning" if button.value else ""
    try:
        view = view_of(
            controls.text.value,
            model,
            layer=controls.layer.value,
            head=controls.head.value,
            masked=masked,
            special=controls.special.value,
        )
    except BertError as error:
        controls.message.value = f"<b>{plain(str(error))}</b>"
        return
    draw(view.figure)
    controls.message.value = ""
    controls.guesses.value = "<br>".join(map(plain, view.guesses))
    controls.words.value = in_words(view.figure.description)
