"""The feed-forward network: the same two-layer map at every position."""

from bert_np import functional
from bert_np.functional import linear
from bert_np.trace import record


def feed_forward(x, params, config, *, trace=None):
    """Widen each vector, bend it with GELU, and narrow it again.

    gelu(x W1 + b1) W2 + b2, with config.hidden_act in the place of gelu.

    Parameters
    ----------
    x : ndarray of shape (B, T, H)
    params : dict
        params["layers"][i]["ffn"] of the parameter tree.
    config : BertConfig
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, T, H)

    Trace
    -----
    inner : (B, T, F)
    activated : (B, T, F)
    outer : (B, T, H)

    Source: Vaswani et al. 2017, equation 2, with GELU for ReLU (Devlin et
    al. 2018, appendix A.2).
    """
    activation = getattr(functional, config.activation)
    inner = linear(x, **params["inner"])  # (B, T, F)
    record(trace, inner=inner)
    activated = activation(inner, out=inner)
    outer = linear(activated, **params["outer"])  # (B, T, H)
    record(trace, activated=activated, outer=outer)
    return outer
