"""Models of the HuggingFace hub, kept in the cache of transformers.

All downloads go through huggingface_hub, whose cache transformers uses
too, so that neither library fetches what the other has fetched.
"""

import hashlib
import re
import sys
from pathlib import Path

from bert_np.config import read_json
from bert_np.errors import BertError
from bert_np.files.notes import MODULES, POOLING
from bert_np.files.vocabulary import SETTINGS, TOKENIZER, TOKENIZER_FILES, VOCAB
from bert_np.files.weights import INDEX, SHARD, WEIGHTS

TEXT_FILES = (*TOKENIZER_FILES, MODULES, f"{POOLING}/config.json")
# What may become the name of a file: huggingface_hub names files by ETags.
TOKEN = re.compile(r'(?!.*\.\.)[\w."-]+', re.ASCII)


def fetch_from_hub(name):
    """Return a model's folder in the hub's cache, downloading it if needed."""
    try:
        for repo in spellings(name):
            folder = _cached(repo)
            if folder is not None:
                return folder
        return _download(name)
    except BertError:
        raise
    except Exception as error:
        # A narrower class will not do: huggingface_hub passes on whatever its
        # HTTP library raises, and it has changed that library twice.
        raise BertError(_explain(error, name)) from error


def spellings(name):
    """Return the names under which a model may lie in the cache.

    Google's BERTs had no owner at first, so that bert-base-uncased and
    google-bert/bert-base-uncased are the same model.
    """
    bare = name.removeprefix("google-bert/")
    return (name,) if "/" in bare else (name, bare, f"google-bert/{bare}")


def _cached(repo):
    """Return a model's folder in the cache, or None if it is incomplete."""
    from huggingface_hub import try_to_load_from_cache

    def look_up(file):  # its path, a mark that the hub has no such file, or None
        return try_to_load_from_cache(repo, file)

    files = ("config.json", WEIGHTS, INDEX, *TEXT_FILES)
    found = {file: look_up(file) for file in files}
    here = {file for file, path in found.items() if isinstance(path, str)}
    unknown = {file for file, path in found.items() if path is None}
    vocabulary = {VOCAB, TOKENIZER}
    if "config.json" not in here or SETTINGS in unknown:
        return None
    if not vocabulary & here and vocabulary & unknown:
        return None
    shards = _shards(found[INDEX]) if INDEX in here else [WEIGHTS]
    if WEIGHTS in here or all(isinstance(look_up(shard), str) for shard in shards):
        return Path(found["config.json"]).parent
    return None


def _download(repo):
    """Download a model's files into the hub's cache, all of one commit."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    # This fails at once without a hub; hf_hub_download would try for 20 s.
    get_hf_file_metadata(hf_hub_url(repo, "config.json"))
    folder = _download_file(repo, "config.json", "main").parent
    commit = folder.name
    for file in TEXT_FILES:
        _download_if_there(repo, file, commit)
    if _download_if_there(repo, WEIGHTS, commit) is None:
        index = _download_if_there(repo, INDEX, commit)
        if index is None:
            raise BertError(
                f"{repo!r} has no {WEIGHTS} on the hub, and no other format is "
                f"read; after huggingface_hub.snapshot_download({repo!r}, "
                "local_dir='FOLDER'), load_pretrained('FOLDER') says how to convert it"
            )
        for shard in _shards(index):
            _download_file(repo, shard, commit)
    return folder


def _download_if_there(repo, file, commit):
    """Download a file; None if the hub says that it has no such file."""
    from huggingface_hub.utils import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return _download_file(repo, file, commit)
    except LocalEntryNotFoundError:  # no answer from the hub
        raise
    except EntryNotFoundError:
        return None


def _download_file(repo, file, revision):
    """Download a file and verify it with the hash that the hub gives."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    # The hash is asked for first, since a failure after the download would leave
    # an unverified file in the cache.
    answer = get_hf_file_metadata(hf_hub_url(repo, file, revision=revision))
    etag = answer.etag
    for header in (etag, answer.commit_hash):
        if header is not None and not TOKEN.fullmatch(header):
            raise BertError(
                f"{file} of {repo!r} was not fetched: the hub answers {header!r:.60} "
                "where a hash must stand, and a file of that name would be written"
            )
    path = _bring(repo, file, revision)
    if not _matches(path, etag):
        path.resolve().unlink()
        path.unlink(missing_ok=True)  # if it was a link
        raise BertError(
            f"{file} of {repo!r} is not what the hub announced (damaged on the way?); "
            "it was removed: try again, or over another network"
        )
    return path


def _bring(repo, file, revision):
    """Download a file; if an earlier attempt left a wrong part, from the start."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo, file, revision=revision))
    except OSError as error:
        if "Consistency check failed" not in str(error):
            raise
        return Path(hf_hub_download(repo, file, revision=revision, force_download=True))


def _matches(path, etag):
    """Say whether a file has the hash that the hub gives as its ETag."""
    if re.fullmatch("[0-9a-f]{64}", etag):
        return file_digest(path) == etag
    if re.fullmatch("[0-9a-f]{40}", etag):  # git's blob id; some mirrors: plain SHA-1
        header = f"blob {path.stat().st_size}\0".encode()
        return etag in (file_digest(path, "sha1", header), file_digest(path, "sha1"))
    return True  # no hash; the size was compared by huggingface_hub


def _shards(index):
    """Return the weight files that an index names, if they are plain names.

    An index with any other name is refused later, by load_checkpoint.
    """
    values = read_json(index)
    names = values.get("weight_map") if isinstance(values, dict) else None
    names = names.values() if isinstance(names, dict) else ()
    return sorted({n for n in names if isinstance(n, str) and SHARD.fullmatch(n)})


# The class of an error, or its nearest base class -> what it means.
NO_CONFIG = "has no config.json on the hub"
EXPLANATIONS = {
    "GatedRepoError": "asks for consent to its terms: give it on its page on the hub, "
    "then call huggingface_hub.login()",
    "RepositoryNotFoundError": "is neither a folder here nor a public model on the hub",
    "RemoteEntryNotFoundError": NO_CONFIG,
    "EntryNotFoundError": NO_CONFIG,
    "OfflineModeIsEnabled": "is not cached, and HF_HUB_OFFLINE is set; {ahead}",
    "FileMetadataError": "cannot be fetched: what answers is not the hub but perhaps a "
    "login page or a proxy",
    "HfHubHTTPError": "cannot be fetched: the hub answers {error:.60}; {ahead}",
    "ImportError": "needs a package; run: {python} -m pip install huggingface-hub",
    "OSError": "was not fetched: {error:.100}; {ahead}",
    "Exception": "is not cached; the connection to the hub failed ({kind}); {ahead}",
}


def _explain(error, name):
    """Say in one sentence why a model could not be fetched from the hub."""
    if type(error).__name__ == "LocalEntryNotFoundError":
        error = error.__cause__ or ConnectionError("no answer")
    kinds = [kind.__name__ for kind in type(error).__mro__]
    meaning = next(EXPLANATIONS[kind] for kind in kinds if kind in EXPLANATIONS)
    return f"{name!r} " + meaning.format(
        error=" ".join(str(error).split()),
        kind=kinds[0],
        python=_this_python(),
        ahead=f"with a network, run: {fetch_command(name)}",
    )


def fetch_command(name=""):
    """Return the command that fetches a model with the Python that runs."""
    return f"{_this_python()} -m bert_np.files.pretrained {name}".rstrip()


def _this_python():
    """Return the path of the Python that runs, ready for a command line."""
    python = sys.executable or "python"
    return f'"{python}"' if " " in python else python


def file_digest(path, algorithm="sha256", header=b""):
    """Return the hexadecimal hash of a header followed by a file."""
    digest = hashlib.new(algorithm, header, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
