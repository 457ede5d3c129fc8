"""Plant one-line faults in the package and see which test catches each.

    python tests/negative_controls.py [MODULE ...]

Each fault is planted in a copy of the repository, and the module's tests
run there. Prints a table; exits with 1 where a fault survives.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Module -> (fault, source text, what replaces it); the text must stand in
# the module exactly once.
EDITS = {
    "functional": [
        ("the bias is left out", "    y += b\n", ""),
        ("variance divided by n - 1",
         "np.square(y).mean(axis=-1, keepdims=True)",
         "np.square(y).sum(axis=-1, keepdims=True) / (y.shape[-1] - 1)"),
        ("epsilon outside the root",
         "np.sqrt(variance + eps)", "np.sqrt(variance) + eps"),
        ("no gamma", "    y *= gamma\n", ""),
        ("no beta", "    y += beta\n", ""),
        ("norm over the wrong axis", "x.mean(axis=-1, keepdims=True)",
         "x.mean(axis=0, keepdims=True)"),
        ("naive softmax", "y = x - x.max(axis=axis, keepdims=True)", "y = x + 0"),
        ("softmax ignores its axis", "y.sum(axis=axis, keepdims=True)",
         "y.sum(axis=-2, keepdims=True)"),
        ("tanh GELU for the erf form",
         "y = erf(x * math.sqrt(0.5))", "return gelu_tanh(x)"),
        ("GELU without sqrt(2)", "erf(x * math.sqrt(0.5))", "erf(x)"),
        ("a digit of tanh GELU", "y *= 0.044715", "y *= 0.044175"),
        ("a digit of erf", "1.027654815e-1", "1.027564815e-1"),
        ("erf returns float64", "np.full_like(z, ERF_COEFFICIENTS[-1])",
         "np.full(z.shape, ERF_COEFFICIENTS[-1])"),
        ("ReLU lets negative values through", "np.maximum(x, 0)", "np.abs(x)"),
        ("dropout without rescaling", "mask /= 1 - rate", "mask /= 1"),
        ("dropout keeps what it should drop", ">= rate)", "< rate)"),
        ("dropout always on", "if rng is None or rate == 0:", "if rate == 0:"),
    ],
    "embeddings": [
        ("positions start at 1", '["position"][: input_ids.shape[1]]',
         '["position"][1 : input_ids.shape[1] + 1]'),
        ("no positions", "total = word + position", "total = word + 0 * position"),
        ("no segments", "    total += segment\n", ""),
        ("a recorded array is written to", "total = word + position",
         "total = word; total += position"),
        ("epsilon not from the config", "eps=config.layer_norm_eps", "eps=1e-12"),
        ("no dropout", "    x = dropout(x, mask)\n", ""),
    ],
    "attention": [
        ("derived mask inverted", "(input_ids != pad_token_id)",
         "(input_ids == pad_token_id)"),
        ("mask inverted", "where=~visible", "where=visible"),
        ("mask added as -10000",
         "np.copyto(scores, np.finfo(scores.dtype).min, where=~visible)",
         "scores += np.where(visible, 0, -10000).astype(scores.dtype)"),
        ("mask of -inf", "np.finfo(scores.dtype).min", "-np.inf"),
        ("mask on the queries", "[:, None, None, :]", "[:, None, :, None]"),
        ("no mask", "    if visible is not None:", "    if False:"),
        ("no scale", "    scores /= math.sqrt(q.shape[-1])\n", ""),
        ("scaled by the hidden size", "math.sqrt(q.shape[-1])",
         "math.sqrt(q.shape[1] * q.shape[-1])"),
        ("scaled by D", "math.sqrt(q.shape[-1])", "q.shape[-1]"),
        ("softmax over the queries", "softmax(scores)", "softmax(scores, axis=-2)"),
        ("probabilities transposed", "return dropout(probs, mask) @ v",
         "return dropout(probs, mask).swapaxes(-1, -2) @ v"),
        ("attention after dropout returned", "return dropout(probs, mask) @ v, probs",
         "return dropout(probs, mask) @ v, dropout(probs, mask)"),
        ("heads split by reshape alone",
         "x.reshape(B, T, num_heads, H // num_heads).transpose(0, 2, 1, 3)",
         "x.reshape(B, num_heads, T, H // num_heads)"),
        ("heads interleaved",
         "x.reshape(B, T, num_heads, H // num_heads).transpose(0, 2, 1, 3)",
         "x.reshape(B, T, H // num_heads, num_heads).transpose(0, 3, 1, 2)"),
        ("heads merged by reshape alone",
         "x.transpose(0, 2, 1, 3).reshape(B, T, A * D)", "x.reshape(B, T, A * D)"),
        ("query and key swapped", '("query", "key", "value")',
         '("key", "query", "value")'),
        ("value made by the key's matrix", '("query", "key", "value")',
         '("query", "key", "key")'),
        ("no output map", 'linear(context, **params["output"])', "context"),
    ],
    "feed_forward": [
        ("activation not from the config", "getattr(functional, config.activation)",
         "functional.gelu"),
        ("ReLU for GELU", "getattr(functional, config.activation)", "functional.relu"),
        ("no activation", "activated = activation(inner)", "activated = inner"),
    ],
    "encoder": [
        ("no residual", "x + dropout(update, mask)", "dropout(update, mask)"),
        ("dropout of the residual", "x + dropout(update, mask)",
         "dropout(x + update, mask)"),
        ("the two norms exchanged", 'x, attended, params["attention_norm"]',
         'x, attended, params["ffn_norm"]'),
        ("feed-forward skips attention", "feed_forward(x, params",
         "feed_forward(attended, params"),
        ("every layer has the first one's parameters",
         "x, layer_params, attention_mask", "x, params[0], attention_mask"),
        ("last layer left out", "in params:", "in params[:-1]:"),
        ("no dropout after feed-forward", 'branch(trace, "ffn_norm"), rng=rng',
         'branch(trace, "ffn_norm"), rng=None'),
        ("attention kept in spite of the option", "if return_attention:", "if True:"),
    ],
    "pooler": [
        ("pools the tokens of the first sequence", "linear(x[:, 0]", "linear(x[0]"),
        ("pools the last token", "linear(x[:, 0]", "linear(x[:, -1]"),
        ("pools the mean", "linear(x[:, 0]", "linear(x.mean(axis=1)"),
        ("no tanh", "np.tanh(dense)", "dense"),
    ],
    "heads": [
        ("no activation", "activated = activation(transform)", "activated = transform"),
        ("no norm", 'layer_norm(activated, **mlm["norm"], eps=config.layer_norm_eps)',
         "activated"),
        ("no bias", '.T, mlm["bias"])', '.T, 0 * mlm["bias"])'),
        ("next-sentence columns reversed", "linear(pooler_output, **nsp)",
         "linear(pooler_output, **nsp)[:, ::-1]"),
    ],
    "model": [
        ("id V accepted", "array >= limit", "array > limit"),
        ("negative ids wrap", "(array < 0) | (array >= limit)", "array >= limit"),
        ("ids cast before they are checked", "_as_array(name, ids)",
         "_as_array(name, ids).astype(int)"),
        ("a position too many", "if T > limit:", "if T > limit + 1:"),
        ("pad id not from the config", "input_ids, config.pad_token_id",
         "input_ids, 0"),
        ("given mask not used", "return mask.astype(bool)",
         "return np.ones_like(mask, bool)"),
        ("mask of 0.5 accepted", "(mask == 0) | (mask == 1)",
         "(mask >= 0) & (mask <= 1)"),
        ("segments ignored", "input_ids, segment_ids, params[",
         "input_ids, 0 * segment_ids, params["),
        ("no dropout in the embeddings",
         'trace=branch(trace, "embeddings"), rng=rng',
         'trace=branch(trace, "embeddings"), rng=None'),
    ],
    "config": [
        ("gelu_new means erf", '"gelu_new": "gelu_tanh"', '"gelu_new": "gelu"'),
        ("epsilon 1e-5 by default", "eps: float = 1e-12", "eps: float = 1e-5"),
        ("heads need not divide",
         "self.hidden_size % self.num_attention_heads:", "False:"),
        ("true is a size", "type(value) is not int or",
         "not isinstance(value, int) or"),
        ("any model type", "        _require_bert(values)\n", ""),
        ("a key may stand twice", "if len(values) < len(pairs):", "if False:"),
        ("pad id V accepted", "<= self.pad_token_id < self.vocab_size",
         "<= self.pad_token_id <= self.vocab_size"),
    ],
    "parameters": [
        ("MLM bias of size H", '"bias": (V,)', '"bias": (H,)'),
        ("standard deviation squared", "*= config.initializer_range",
         "*= config.initializer_range**2"),
        ("gamma starts at 0", "np.ones(shape, dtype)", "np.zeros(shape, dtype)"),
        ("two dtypes accepted", "if len(dtypes) > 1:", "if len(dtypes) > 2:"),
        ("unknown parameters accepted", "if missing or unknown:", "if missing:"),
        ("the ledger counts one layer", "L * layer)", "layer)"),
    ],
    "trace": [
        ("the trace shares memory", "np.array(array)", "np.asarray(array)"),
        ("None is recorded", "if array is not None:", "if True:"),
        ("the first entry for the largest", "np.argmax(np.nan_to_num(gap, nan=np.inf))",
         "0 * np.argmax(gap)"),
        ("NaN agrees", "np.allclose(b, a, rtol=rtol, atol=atol)",
         "not (gap > atol + rtol * np.abs(a)).any()"),
    ],
    "tokenizer": [
        ("a word may have 200 characters", "MAX_WORD_LENGTH = 100",
         "MAX_WORD_LENGTH = 200"),
        ("only Unicode's punctuation counts", "ch in string.punctuation or ", ""),
        ("zero-width characters stay", '("Cc", "Cf", "Co")', '("Cc", "Co")'),
        ("accents stay", '"" if unicodedata.category(ch) == "Mn" else ch', "ch"),
        ("the shortest piece first", "range(most, len(prefix), -1)",
         "range(len(prefix) + 1, most + 1)"),
        ("no ## within a word", 'prefix = "##"', 'prefix = ""'),
        ("one piece that is unknown", "        else:\n            return [\"[UNK]\"]",
         "        else:\n            return pieces + [\"[UNK]\"]"),
        ("a tie shortens the second text",
         "(short, room - short) if first <= second else (room - short, short)",
         "(short, room - short) if first < second else (room - short, short)"),
        ("one segment for a pair", "[segment] * (len(part) + 1)",
         "[0] * (len(part) + 1)"),
        ("padding is not masked", 'stack("attention_mask", 0)',
         'stack("attention_mask", 1)'),
        ("padded with 0 whatever the vocabulary", 'stack("input_ids", pad_token_id)',
         'stack("input_ids", 0)'),
        ("offsets of the cleaned text", "sources[at + start]", "at + start"),
    ],
    "checkpoint": [
        ("square matrices stay transposed", "np.array(array.T, dtype",
         "np.array(array if array.shape[0] == array.shape[1] else array.T, dtype"),
        ("depth read from one digit", 're.findall("[0-9]+", path)',
         're.findall("[0-9]", path)'),
        ("query and key exchanged",
         '"layers.{}.attention.query": "encoder.layer.{}.attention.self.query"',
         '"layers.{}.attention.query": "encoder.layer.{}.attention.self.key"'),
        ("gamma read as bias", '"LayerNorm.gamma": "LayerNorm.weight"',
         '"LayerNorm.gamma": "LayerNorm.bias"'),
        ("bfloat16 shifted by 15", "<< 16)", "<< 15)"),
        ("loaded arrays can be written to", "array.flags.writeable = False",
         "array.flags.writeable = True"),
        ("NaN accepted", "if not allow_nonfinite and", "if False and"),
        ("another output matrix accepted",
         "elif not np.array_equal(arrays[path], array, equal_nan=True):",
         "elif False:"),
        ("saved without the transpose", 'array.T if place.endswith(".W") else array',
         "array"),
        ("any prefix accepted", 'if prefix not in ("", "bert."):', "if False:"),
    ],
    "weight_files": [
        ("a link may leave the folder",
         "if not any(real.is_relative_to(place) for place in (home, *blobs)):",
         "if False:"),
        ("a file of another length is read", "if size != announced:",
         "if size > announced + 10**9:"),
        ("shards anywhere on the disk",
         "if not isinstance(file, str) or not SHARD.fullmatch(file):",
         "if not isinstance(file, str):"),
    ],
    "pretrained": [
        ("the hash is not looked at", "if found != expected:",
         "if found[0] != expected[0]:"),
    ],
    "mistakes": [
        ("every hint fits", "<= allowed:", ">= 0:"),
        ("gamma is taken for 1", "return gamma,", "return 1.0,"),
    ],
}
# Where a fault shows, if not in the module's own tests and the oracle.
TESTS = {
    "checkpoint": ["checkpoint"],
    "config": ["config"],
    "mistakes": ["trace"],
    "parameters": ["parameters"],
    "pretrained": ["pretrained"],
    "tokenizer": ["tokenizer", "properties"],
    "weight_files": ["checkpoint"],
    "trace": ["trace"],
}


def edited(module, old, new, root=ROOT):
    """The module's source with one text replaced."""
    source = (root / "bert_np" / f"{module}.py").read_text("utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{module}.py has {source.count(old)} times: {old}")
    return source.replace(old, new)


def copy_repository(root, folder):
    for name in ("bert_np", "tests"):
        shutil.copytree(root / name, folder / name)
    shutil.copy(root / "pyproject.toml", folder)


def run_tests(folder, names):
    """pytest in a copy: its exit code and the first test that failed."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, *(f"tests/test_{name}.py" for name in names)],
        cwd=folder, env=environment, capture_output=True, text=True,
    )
    if run.returncode not in (0, 1, 2):  # 2: a test file failed as it was read
        raise RuntimeError(run.stdout + run.stderr)
    failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)( - |$)", run.stdout, re.M)
    return run.returncode, failed[1] if failed else ""


def try_edit(root, module, fault, old, new):
    """Plant a fault; return (module, fault, the test that caught it or "")."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        copy_repository(root, folder)
        source = edited(module, old, new, root)
        (folder / "bert_np" / f"{module}.py").write_text(source, "utf-8")
        code, test = run_tests(folder, own_tests(module))
        return module, fault, test if code else ""


def own_tests(module):
    return TESTS.get(module, [module, "model"])


def main(modules):
    modules = modules or list(EDITS)
    jobs = [(module, *edit) for module in modules for edit in EDITS[module]]
    survived = 0
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(2) as pool:
        root = Path(root)
        copy_repository(ROOT, root)
        code, test = run_tests(root, sorted({t for m in modules for t in own_tests(m)}))
        if code:
            raise RuntimeError(f"fails without a fault: {test}")
        print("| module | fault | caught by |\n|---|---|---|", flush=True)
        for module, fault, test in pool.map(lambda job: try_edit(root, *job), jobs):
            survived += not test
            print(f"| {module} | {fault} | {test or '**nothing**'} |", flush=True)
    print(f"\n{len(jobs)} faults, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
