"""Nested dicts and lists of arrays; nothing here is about BERT."""

import numpy as np


def is_array(leaf):
    """Say whether a leaf is an array that follows NumPy's usual rules.

    A numpy.matrix multiplies differently, a masked array hides values.
    """
    kinds = (np.ma.MaskedArray, np.matrix)
    return isinstance(leaf, np.ndarray) and not isinstance(leaf, kinds)


def leaves(tree, path=""):
    """Yield (path, leaf) for each leaf of a tree, in the tree's order.

    A path is dotted, such as "layers.0.attention.query.W".

    >>> list(leaves({"a": 1, "b": [2, {"c": 3}]}))
    [('a', 1), ('b.0', 2), ('b.1.c', 3)]
    """
    if isinstance(tree, (dict, list)):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, child in items:
            yield from leaves(child, f"{path}.{key}" if path else str(key))
    else:
        yield path, tree


def map_leaves(function, tree, path=""):
    """Return a tree of the same form with function(path, leaf) as leaves.

    >>> map_leaves(lambda path, leaf: 10 * leaf, {"a": 1, "b": [2, 3]})
    {'a': 10, 'b': [20, 30]}
    """
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    else:
        return function(path, tree)
    mapped = {
        key: map_leaves(function, child, f"{path}.{key}" if path else str(key))
        for key, child in items
    }
    return mapped if isinstance(tree, dict) else list(mapped.values())
