"""Plant one-line faults in the training code and see which test catches each.

    python tests/training_negative_controls.py [MODULE ...]

Each fault is planted in a copy of the repository, and the tests of
training run there, without those that need torch. Prints a table; exits
with 1 where a fault survives.
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

# Module of bert_np/training -> (fault, source text, what replaces it); the
# text must stand in the module exactly once.
EDITS = {
    "functional_backward": [
        ("linear: d_x doubled", "d_rows @ W.T", "d_rows @ W.T * 2"),
        ("linear: the bias takes the mean", "d_rows.sum(axis=0)",
         "d_rows.mean(axis=0)"),
        ("norm: the mean is not taken out",
         "    d_x -= d_x.mean(axis=-1, keepdims=True)\n", ""),
        ("norm: the stretch is not taken out", "    d_x -= z\n", ""),
        ("norm: gamma is forgotten", "d_x = d_y * gamma", "d_x = d_y * 1"),
        ("norm: not divided by s", "    d_x /= s\n", ""),
        ("norm: epsilon is forgotten", "keepdims=True) + eps)", "keepdims=True))"),
        ("norm: beta's gradient is gamma's", '"beta": d_y.sum(axis=axes)',
         '"beta": (d_y * z).sum(axis=axes)'),
        ("norm: the gradient that came is written to", "d_x = d_y * gamma",
         "d_x = d_y; d_x *= gamma"),
        ("softmax: the average is not taken out",
         "    d_x -= probs * d_x.sum(axis=-1, keepdims=True)\n", ""),
        ("softmax: summed over the queries", "d_x.sum(axis=-1, keepdims=True)",
         "d_x.sum(axis=-2, keepdims=True)"),
        ("gelu: no density", "    d_x += density\n", ""),
        ("gelu: density without x", "    density *= x\n", ""),
        ("gelu: exp(-x²)", "density *= -0.5", "density *= -1"),
        ("gelu: wrong at 0", "chance[x == 0] = 0.5", "chance[x == 0] = 0"),
        ("tanh gelu: a digit", "(1 + 3 * 0.044715 * x * x)",
         "(1 + 3 * 0.044175 * x * x)"),
        ("tanh gelu: the 3 is lost", "(1 + 3 * 0.044715", "(1 + 0.044715"),
        ("relu: x for its sign", "d_y * (x > 0)", "d_y * x * (x > 0)"),
        ("dropout is ignored", "d_y if mask is None else d_y * mask", "d_y"),
        ("lookup: the last of equal ids wins",
         "np.add.reduceat(d_rows.reshape(-1, H)[order], starts, axis=0)",
         "d_rows.reshape(-1, H)[order][starts]"),
        ("lookup: rows are not sorted with their ids", ".reshape(-1, H)[order]",
         ".reshape(-1, H)"),
    ],
    "backward": [
        ("positions take the mean of the batch", "d_sum.sum(axis=0)",
         "d_sum.mean(axis=0)"),
        ("embeddings: dropout is ignored",
         'd_norm = dropout_backward(d_output, trace.get("dropout_mask"))',
         "d_norm = d_output"),
        ("segments by word id", "lookup_backward(d_sum, segment_ids,",
         "lookup_backward(d_sum, input_ids % 2,"),
        ("attention: d_v from probabilities before dropout",
         "dropout(probs, mask).swapaxes(-1, -2)", "probs.swapaxes(-1, -2)"),
        ("attention: probabilities not transposed",
         "dropout(probs, mask).swapaxes(-1, -2) @ d_context",
         "dropout(probs, mask) @ d_context"),
        ("attention: dropout is ignored in d_probs",
         "dropout_backward(d_context @ v.swapaxes(-1, -2), mask)",
         "d_context @ v.swapaxes(-1, -2)"),
        ("attention: no scale", "    d_scores /= math.sqrt(q.shape[-1])\n", ""),
        ("attention: a constant score gets a gradient",
         "    np.copyto(d_scores, 0, where=~visible)\n", ""),
        ("attention: query and key exchanged",
         "return d_scores @ k, d_scores.swapaxes(-1, -2) @ q, d_v",
         "return d_scores.swapaxes(-1, -2) @ q, d_scores @ k, d_v"),
        ("attention: d_x from the value alone", "d_x = d_x + d_part", "d_x = d_part"),
        ("attention: the output map is fed x",
         'd_output, trace["context"], params["output"]["W"]',
         'd_output, x, params["output"]["W"]'),
        ("the activation is fed its own output",
         'd_activated, trace["inner"], trace["activated"]',
         'd_activated, trace["activated"], trace["activated"]'),
        ("residual: dropout is ignored",
         'return d_x, dropout_backward(d_x, trace.get("dropout_mask")), grads',
         "return d_x, d_x, grads"),
        ("no residual around the feed-forward", "d_middle + d_block,", "d_block,"),
        ("no residual around the attention", "return d_x + d_block, {",
         "return d_block, {"),
        ("the layers' gradients in reverse order", "grads.insert(0, layer_grads)",
         "grads.append(layer_grads)"),
        ("each layer is fed its own output",
         '[x] + [layer["output"] for layer in trace[:-1]]',
         '[layer["output"] for layer in trace]'),
        ("pooler: no tanh", "d_output * (1 - np.square(trace[\"output\"]))",
         "d_output * 1"),
        ("pooler: tanh of the wrong stage", 'np.square(trace["output"])',
         'np.square(trace["dense"])'),
        ("MLM head: its norm is fed the transform",
         'd_norm, trace["activated"], mlm["norm"]["gamma"]',
         'd_norm, trace["transform"], mlm["norm"]["gamma"]'),
    ],
    "pretraining": [
        ("tied table: the head's share is lost",
         '    embeddings["word"] += d_word\n', ""),
        ("tied table: the lookup's share is lost",
         'embeddings["word"] += d_word', 'embeddings["word"] = d_word'),
        ("the MLM head does not teach the encoder",
         "    d_hidden[asked] += d_asked[0]\n", ""),
        ("one row of [CLS] for both heads", "d_hidden[asked] += d_asked[0]",
         "d_hidden[asked] = d_asked[0]"),
        ("no dropout in training", "trace=trace, rng=rng,\n        return_attention",
         "trace=trace, rng=None,\n        return_attention"),
        ("the attention mask is not passed on",
         'attention_mask=batch["attention_mask"], trace', "trace"),
        ("one dropout for all parts", "np.random.default_rng(seed) for seed in seeds",
         "np.random.default_rng(seeds[0]) for seed in seeds"),
        ("the last part is lost", "for tree in trees[1:]]", "for tree in trees[1:-1]]"),
        ("NSP is not counted", '"loss": mlm_loss + nsp_loss', '"loss": mlm_loss'),
    ],
    "losses": [
        ("ignored positions count in the mean", "count = count or asked.size",
         "count = count or labels.size"),
        ("a part divides by its own count", "count = count or asked.size",
         "count = asked.size"),
        ("softmax without the one-hot label", "    probs[rows, right] -= 1\n", ""),
        ("the sign of the gradient", "d_logits[asked] = probs",
         "d_logits[asked] = -probs"),
        ("naive softmax", "    z -= z.max(axis=-1, keepdims=True)\n", ""),
        ("word 0 is ignored", "np.flatnonzero(right != IGNORED)",
         "np.flatnonzero(right > 0)"),
        ("right are those not wrong", "logits.argmax(axis=-1) == labels",
         "logits.argmin(axis=-1) != labels"),
    ],
    "masking": [
        ("special tokens are chosen",
         "    chosen &= ~np.isin(input_ids, special_ids)\n", ""),
        ("all of the chosen are hidden", "chosen & (fate < 0.9)",
         "chosen & (fate < 1)"),
        ("half of them [MASK]", "fate < 0.8", "fate < 0.5"),
        ("special tokens as random words", "rng.choice(ordinary, input_ids.shape)",
         "rng.integers(vocab_size, size=input_ids.shape)"),
        ("labels of hidden tokens only", "np.where(chosen, input_ids, IGNORED)",
         "np.where(hidden, input_ids, IGNORED)"),
        ("labels of what the model sees", "np.where(chosen, input_ids, IGNORED)",
         "np.where(chosen, masked_ids, IGNORED)"),
        ("whole columns are chosen", "rng.random(input_ids.shape) < rate",
         "np.tile(rng.random(input_ids.shape[1]) < rate, (len(input_ids), 1))"),
    ],
    "adam": [
        ("decay for norms and biases too",
         'if path.rsplit(".", 1)[-1] not in NOT_DECAYED:', "if True:"),
        ("no decay", "change += rate * weight_decay * p", "change += 0 * p"),
        ("decay not scaled by the rate", "rate * weight_decay * p", "weight_decay * p"),
        ("no correction of m", "rate / (1 - beta1**step)", "rate"),
        ("no correction of v", "squares[path] / (1 - beta2**step)", "squares[path]"),
        ("epsilon inside the root",
         "np.sqrt(squares[path] / (1 - beta2**step))\n        change += eps",
         "np.sqrt(squares[path] / (1 - beta2**step) + eps)"),
        ("steps counted from 0", 'step = state["step"] + 1\n    m',
         'step = state["step"] or 1\n    m'),
        ("betas exchanged", 'grads, beta1, lambda g: g)', 'grads, beta2, lambda g: g)'),
        ("uphill", "np.subtract(p, change, out=change)",
         "np.add(p, change, out=change)"),
        ("v of |g|", "beta2, np.square)", "beta2, np.abs)"),
        ("warm-up from 0", "peak * (step + 1) / warmup_steps",
         "peak * step / warmup_steps"),
        ("the schedule does not end at 0", "peak * (total_steps - step) /",
         "peak * (total_steps - step + warmup_steps) /"),
        ("clipped array by array", "g * (max_norm / norm)",
         "g * (max_norm / global_norm({0: g}))"),
        ("short gradients are made longer", "if norm <= max_norm:", "if False:"),
        ("params are written to", "np.subtract(p, change, out=change)",
         "np.subtract(p, change, out=p)"),
    ],
    "train": [
        ("threads beside those of BLAS", "return None\n    return threadpool",
         "return nullcontext()\n    return threadpool"),
        ("no clipping", "grads, norm = clip_by_global_norm(grads, settings.max_norm)",
         "_, norm = clip_by_global_norm(grads, settings.max_norm)"),
        ("training without dropout", "rng=rng, parts=", "rng=None, parts="),
        ("the generator's state is not restored",
         '    rng.bit_generator.state = run["rng"]\n', ""),
        ("the state of the generator before the step",
         '"rng": rng.bit_generator.state,', '"rng": run["rng"],'),
        ("an interruption is not saved",
         "            save_run(checkpoint, run, config, settings)\n        raise",
         "            pass\n        raise"),
        ("an interruption is swallowed", "        raise\n    return", "    return"),
        ("the end is not saved", "step % checkpoint_every == 0 or last", "False"),
        ("Adam's memory is lost", '        "adam": state,\n',
         '        "adam": run["adam"],\n'),
    ],
    "run": [
        ("m and v exchanged", '"m": trees["m"], "v": trees["v"]',
         '"m": trees["v"], "v": trees["m"]'),
        ("written in place", 'path.with_name(f"{path.name}.tmp")', "path"),
        ("settings are not compared", '"settings": settings._asdict()}',
         '"settings": {}}'),
        ("the rest of a failed save stays", "            temporary.unlink()",
         "            pass"),
        ("pickles are read", "allow_pickle=False", "allow_pickle=True"),
    ],
}
# The test file that must catch a module's faults, if not test_training.
TESTS = dict.fromkeys(("functional_backward", "backward", "pretraining", "losses"),
                      "backward")


def edited(module, old, new):
    """The module's source with one text replaced."""
    source = (ROOT / "bert_np" / "training" / f"{module}.py").read_text("utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{module}.py has {source.count(old)} times: {old}")
    return source.replace(old, new)


def copy_repository(folder):
    ignore = shutil.ignore_patterns("__pycache__", ".*", "benchmarks", "notebooks")
    for name in ("bert_np", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)


def run_tests(folder, names):
    """pytest in a copy: its exit code and the first test that failed."""
    environment = os.environ | {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
               "-k", "not live and not planted"]
    run = subprocess.run(
        [*command, *(f"tests/test_{name}.py" for name in names)],
        cwd=folder, env=environment, capture_output=True, text=True,
    )
    if run.returncode not in (0, 1, 2):  # 2: a test file failed as it was read
        raise SystemExit(run.stdout + run.stderr)
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", run.stdout, re.MULTILINE)
    return run.returncode, failed[1] if failed else ""


def try_edit(module, fault, old, new):
    """Plant a fault and return (module, fault, the test that caught it or "")."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        copy_repository(folder)
        place = folder / "bert_np" / "training" / f"{module}.py"
        place.write_text(edited(module, old, new), "utf-8")
        code, test = run_tests(folder, [TESTS.get(module, "training")])
        return module, fault, test if code else ""


def check_sound():
    """Without a fault all of these tests must pass."""
    with tempfile.TemporaryDirectory() as folder:
        copy_repository(Path(folder))
        code, test = run_tests(Path(folder), ["backward", "training"])
    if code:
        raise SystemExit(f"fails without a fault: {test}")


def main(modules):
    check_sound()
    jobs = [(module, *edit) for module in modules or EDITS for edit in EDITS[module]]
    survived = 0
    print("| module | fault | caught by |\n|---|---|---|")
    with ThreadPoolExecutor(max_workers=2) as pool:
        for module, fault, test in pool.map(lambda job: try_edit(*job), jobs):
            survived += not test
            print(f"| {module} | {fault} | {test or '**nothing**'} |", flush=True)
    print(f"\n{len(jobs)} faults, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
