"""Where the time of the plain path goes, step by step.

`speed.py --only shares` measures it on its workloads.
"""

import statistics
import time
from contextlib import ExitStack
from importlib import import_module
from unittest import mock

# Step -> the function that takes it, and the modules that call it by this name.
STEPS = {
    "linear maps": ("linear", ("attention", "feed_forward", "pooler")),
    "attention": ("scaled_dot_product", ("attention",)),
    "softmax": ("softmax", ("attention",)),
    "GELU": ("gelu", ("functional",)),
    "norms": ("add_and_norm", ("encoder",)),
}


def stopwatch(function, name, seconds):
    """The function, and its time added to seconds[name]."""

    def run(*arguments, **options):
        begin = time.perf_counter()
        result = function(*arguments, **options)
        seconds[name] += time.perf_counter() - begin
        return result

    return run


def shares_of_one_pass(run):
    """Step -> its share of the time of one forward pass."""
    seconds = dict.fromkeys(STEPS, 0.0)
    with ExitStack() as stack:
        for step, (name, modules) in STEPS.items():
            for module in modules:
                module = import_module(f"bert_np.{module}")
                watched = stopwatch(getattr(module, name), step, seconds)
                stack.enter_context(mock.patch.object(module, name, watched))
        begin = time.perf_counter()
        run()
        whole = time.perf_counter() - begin
    seconds["attention"] -= seconds["softmax"]  # which runs within it
    seconds["rest"] = whole - sum(seconds.values())
    return {step: taken / whole for step, taken in seconds.items()}


def shares(run, count):
    """Step -> the median share of several passes."""
    run()
    passes = [shares_of_one_pass(run) for _ in range(count)]
    return {
        step: round(statistics.median(one[step] for one in passes), 3)
        for step in passes[0]
    }
