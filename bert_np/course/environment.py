"""Does this machine have everything that the course needs?"""

import platform
import sys
from importlib import metadata

from bert_np.errors import require_bool
from bert_np.files.hub import fetch_command
from bert_np.files.pretrained import MINILM, is_cached, load_pretrained

OLDEST_PYTHON = (3, 10)
# Package -> what the course needs it for.
PACKAGES = {
    "numpy": "all arithmetic",
    "matplotlib": "figures",
    "safetensors": "weight files",
    "huggingface-hub": "downloads",
    "jupyterlab": "notebooks",
    "ipywidgets": "sliders",
    "pytest": "tests",
}


def check_environment(versions=False):
    """Print a table of what the course needs and whether it is there.

    It works without a network; nothing is installed or downloaded.

    Parameters
    ----------
    versions : bool
        Also print the versions found, for a request for help.

    Returns
    -------
    bool
        Whether everything is there.
    """
    require_bool("versions", versions)
    rows = environment_rows()
    for name, found, good, purpose in rows:
        version = f"{found:12} " if versions else ""
        print(f"{'ok' if good else 'MISSING':8} {name:22} {version}{purpose}")
    return all(good for _, _, good, _ in rows)


def environment_rows():
    """Return the rows: (name, what was found, whether it will do, purpose)."""
    oldest = ".".join(map(str, OLDEST_PYTHON))
    python = sys.version_info >= OLDEST_PYTHON
    rows = [("Python", platform.python_version(), python, f"{oldest} or newer")]
    for name, purpose in PACKAGES.items():
        version = installed_version(name)
        rows.append((name, version or "none", version is not None, purpose))
    toy = "found" if toy_loads() else "none"
    rows.append(("model toy", toy, toy == "found", "chapters 08, 11 and 12"))
    cached = is_cached()
    fetch = f"fetch it: {fetch_command()}"
    purpose = "all chapters but 12" if cached else fetch
    found = "found" if cached else "none"
    rows.append((f"model {MINILM.name}", found, cached, purpose))
    return rows


def installed_version(name):
    """Return the version of an installed package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def toy_loads():
    """Return whether the model that comes with the package can be read."""
    try:
        load_pretrained("toy")
    except ValueError:
        return False
    return True
