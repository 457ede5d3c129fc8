"""From ids to vectors."""

from bert_np.functional import dropout, dropout_mask, layer_norm
from bert_np.trace import record


def embed(input_ids, segment_ids, params, config, *, trace=None, rng=None):
    """Add a word, a position and a segment vector, then normalise the sum.

    layer_norm(word[id] + position[t] + segment[s])

    Parameters
    ----------
    input_ids : ndarray of shape (B, T)
        Integers in 0..V-1; not checked here.
    segment_ids : ndarray of shape (B, T)
        Integers in 0..S-1; 0 for the first text, 1 for the second.
    params : dict
        params["embeddings"] of the parameter tree.
    config : BertConfig
    trace : dict, optional
    rng : numpy.random.Generator, optional
        Switches hidden dropout on.

    Returns
    -------
    ndarray of shape (B, T, H)

    Trace
    -----
    word : (B, T, H)
    position : (T, H)
    segment : (B, T, H)
    sum : (B, T, H)
    norm : (B, T, H)
    output : (B, T, H)

    Source: Devlin et al. 2018, section 3 and figure 2.
    """
    word = params["word"][input_ids]  # (B, T, H)
    position = params["position"][: input_ids.shape[1]]  # (T, H)
    segment = params["segment"][segment_ids]  # (B, T, H)
    total = word + position
    total += segment
    record(trace, word=word, position=position, segment=segment, sum=total)
    x = layer_norm(total, **params["norm"], eps=config.layer_norm_eps)
    record(trace, norm=x)
    mask = dropout_mask(x.shape, config.hidden_dropout_prob, rng, x.dtype)
    x = dropout(x, mask)
    record(trace, dropout_mask=mask, output=x)
    return x
