"""Elementwise arithmetic block by block, for large arrays.

A formula of ten operations on a large array writes ten large arrays to
memory and reads them again. On a block of the array they stay in the
processor's cache. The results are the same, bit for bit.
"""

import numpy as np

LARGE = 2**20  # values: less fits the cache anyway
BLOCK = 2**15


def by_blocks(function, *arrays):
    """Apply an elementwise function to arrays of one shape.

    Parameters
    ----------
    function : function
        Takes as many arrays; returns a tuple of arrays of that shape and
        dtype.
    *arrays : ndarray
        All of one shape.

    Returns
    -------
    tuple of ndarray

    Examples
    --------
    >>> by_blocks(lambda x, y: (x + y, x * y), np.array([1, 2]), np.array([3, 4]))
    (array([4, 6]), array([3, 8]))
    """
    size, shape = arrays[0].size, arrays[0].shape
    if size < LARGE:
        return function(*arrays)
    flat, results = [array.reshape(-1) for array in arrays], ()
    for start in range(0, size, BLOCK):
        block = slice(start, start + BLOCK)
        parts = function(*(array[block] for array in flat))
        results = results or [np.empty(size, part.dtype) for part in parts]
        for result, part in zip(results, parts):
            result[block] = part
    return tuple(result.reshape(shape) for result in results)
