"""A batch cut into parts, whose losses and gradients are added up.

A mean is a sum, divided by a count. So the loss of a batch is the sum of
what its parts contribute, each divided by the count of the whole batch,
and the same holds for the gradients. Small parts fit the caches, and each
can run in its own thread.
"""

import numpy as np

from bert_np.tree import leaves, map_leaves


def add_parts(run_part, batch, parts, rng=None, run_all=map):
    """Run each part of a batch, and add up what the parts return.

    Parameters
    ----------
    run_part : function
        run_part(batch, rng) returns a tuple of numbers, such as losses
        and counts, and the tree of gradients.
    batch : dict of ndarray of shape (B, ...)
    parts : int
        1..B. With the same parts, results are the same bits whether they
        run one after another or in threads.
    rng : numpy.random.Generator, optional
        If the batch is cut, it draws a seed for each part.
    run_all : function
        map, or the map of a pool of threads.

    Returns
    -------
    numbers : list
    grads : dict
    """
    results = list(run_all(run_part, _cut(batch, parts), _generators(rng, parts)))
    numbers = [sum(values) for values in zip(*(result[0] for result in results))]
    return numbers, _add_trees([grads for _, grads in results], run_all)


def _cut(batch, parts):
    """Cut a batch into smaller batches of whole rows."""
    pieces = {key: np.array_split(array, parts) for key, array in batch.items()}
    return [{key: pieces[key][i] for key in batch} for i in range(parts)]


def _generators(rng, parts):
    """Give each part its own generator, so that threads cannot mix the draws."""
    if rng is None or parts == 1:
        return [rng] * parts
    seeds = rng.integers(2**63, size=(parts, 2))
    return [np.random.default_rng(seed) for seed in seeds]


def _add_trees(trees, run_all):
    first, *others = (dict(leaves(tree)) for tree in trees)

    def add(path):
        return sum((other[path] for other in others), start=first[path])

    sums = dict(zip(first, run_all(add, first)))
    return map_leaves(lambda path, _: sums[path], trees[0])
