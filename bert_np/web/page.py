"""The page, assembled from its parts: one file without any outside request."""

from pathlib import Path
from string import Template

from matplotlib.colors import to_hex

from bert_np.errors import BertError
from bert_np.files.pretrained import PACKAGED, fetch, load_pretrained
from bert_np.files.vocabulary import TOKENIZER_FILES
from bert_np.files.weights import WEIGHTS
from bert_np.plotting import colours
from bert_np.plotting.attention_maps import KEY_LABEL, QUERY_LABEL
from bert_np.plotting.html import (
    Html,
    base64_text,
    check_target,
    escape,
    write_file,
)
from bert_np.plotting.scripts import script_json, source_of, with_colours
from bert_np.plotting.viewer import fixed_data
from bert_np.web.constants import page_constants
from bert_np.web.examples import GENERAL, toy_examples

TITLE = "How does BERT know which words to look at?"
HELP = (
    "Type a sentence, with [MASK] where BERT should guess a word. Choose a head, "
    "then a cell of its map: the numbers behind that cell appear below."
)
# In the order in which the browser runs them, after what it shares with the viewer.
SCRIPTS = ("bert", "tokenizer", "checkpoint", "dom", "maps", "guesses")
SCRIPTS += ("numbers", "states", "opening", "page")
MOST_BYTES = 2**27  # of weights inside the page; a folder may be larger


def build_page(model="toy"):
    """Return the live page as HTML: the model runs inside it.

    The page takes a sentence, shows all heads, guesses masked words and
    explains each number. It needs no network and no other file.

    Parameters
    ----------
    model : str or Path
        The model inside the page, a name or a folder that
        `load_pretrained` knows. The page can open others.

    Returns
    -------
    Html
    """
    data = {"constants": page_constants(), "model": pack_model(model)}
    data |= {"colours": pack_colours(), "general": GENERAL}
    script = "const DATA = JSON.parse(document.getElementById('data').textContent);\n"
    scripts = [script + "const CONSTANTS = DATA.constants;\n"]
    scripts += [source_of("parts.js"), *(page_part(f"{name}.js") for name in SCRIPTS)]
    return Html(
        Template(page_part("page.html")).substitute(
            title=escape(TITLE),
            help=escape(HELP),
            query_label=escape(QUERY_LABEL),
            key_label=escape(KEY_LABEL),
            style=source_of("parts.css") + with_colours(page_part("page.css")),
            data=script_json(data),
            scripts="\n".join(f"<script>\n{text}</script>" for text in scripts),
        )
    )


def save_page(path, model="toy"):
    """Write the live page to a file.

    Parameters
    ----------
    path : str or Path
        A file in a folder that exists, such as "bert.html".
    model : str or Path
        As in `build_page`.

    Returns
    -------
    Path
    """
    return write_file(check_target(path), build_page(model))


def page_part(name):
    """Return the text of a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def pack_model(name):
    """Return the files of a model and what to try with it, ready for JSON.

    The weights are the file itself in base64: the page reads them as it
    reads those of a folder.
    """
    folder = Path(fetch(name))
    weights = folder / WEIGHTS
    if not weights.is_file() or weights.stat().st_size > MOST_BYTES:
        raise BertError(
            f"model = {folder.name!r}: a page holds one {WEIGHTS} of at most "
            f"{MOST_BYTES / 1e6:.0f} MB; open the folder in the page instead"
        )
    loaded = load_pretrained(folder)
    texts = ("config.json", *TOKENIZER_FILES)
    is_toy = folder == PACKAGED["toy"]
    return {
        "name": "the toy" if is_toy else folder.name,
        "texts": {
            file: (folder / file).read_text(encoding="utf-8")
            for file in texts
            if (folder / file).is_file()
        },
        "weights": base64_text(weights.read_bytes()),
        "examples": toy_examples(loaded) if is_toy else GENERAL,
    }


def pack_colours():
    """Return the colour maps of attention and of signed numbers."""
    fixed, signed = fixed_data(1.0), colours.signed_colour_map()
    return {
        "attention": fixed["colours"],
        "ink": fixed["dark"],
        "signed": "".join(to_hex(signed(i))[1:] for i in range(256)),
        "masked": colours.MASKED,
        "heads": colours.HEADS,
    }
