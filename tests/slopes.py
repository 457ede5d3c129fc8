"""Gradients against central differences: the slope of a loss, measured."""

import numpy as np

from bert_np.tree import leaves, map_leaves

STEP = 1e-5  # of the central differences


def with_leaf(tree, path, array):
    """The tree with another array at a path."""
    return map_leaves(lambda name, leaf: array if name == path else leaf, tree)


def directions(shape, rng):
    """Two directions that move every element, and three single elements."""
    yield from rng.normal(size=(2, *shape))
    size = int(np.prod(shape))
    for place in rng.choice(size, min(3, size), replace=False):
        yield np.eye(1, size, place).reshape(shape)


def assert_slopes(loss, tree, grads):
    """Each leaf's gradient is the slope of the loss in several directions."""
    rng, grads = np.random.default_rng(0), dict(leaves(grads))
    assert grads.keys() == dict(leaves(tree)).keys()
    for path, leaf in leaves(tree):
        assert grads[path].shape == leaf.shape
        found, expected = [], []
        for d in directions(leaf.shape, rng):
            up, down = (
                loss(with_leaf(tree, path, leaf + s * d)) for s in (STEP, -STEP)
            )
            found.append((grads[path] * d).sum())
            expected.append((up - down) / (2 * STEP))
        gaps = np.abs(np.array(found) - expected)
        assert gaps.max() <= 1e-6 * np.abs(expected).max() + 2e-9, path
