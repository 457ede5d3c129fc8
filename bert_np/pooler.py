"""The pooler: one vector for the whole sequence."""

import numpy as np

from bert_np.functional import linear
from bert_np.trace import record


def pool(x, params, *, trace=None):
    """Map the vector of the first token, [CLS], through a dense tanh layer.

    tanh(x[:, 0] W + b). It is not the [CLS] row itself.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["pooler"] of the parameter tree.
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, H)
        Between -1 and 1.

    Trace
    -----
    dense : (B, H)
    output : (B, H)

    Source: Devlin et al. 2018, section 3; the dense tanh layer is in the
    released code only.
    """
    dense = linear(x[:, 0], **params)  # (B, H)
    output = np.tanh(dense)
    record(trace, dense=dense, output=output)
    return output
