"""The heads, from hidden states to logits.

Two serve pre-training: masked words and the next sentence. Three are added
when a trained model learns a task: a label for a text, a label for each
token, and the span of a text that answers a question.
"""

from bert_np.config import require_config
from bert_np.functional import ACTIVATIONS, layer_norm, linear
from bert_np.inputs import (
    check_pooler_output,
    check_trace,
    check_vectors,
    require_head,
    require_word_table,
)
from bert_np.trace import branch, record


def masked_lm_logits(last_hidden_state, params, config, *, trace=None):
    """Score every word of the vocabulary at every position.

    layer_norm(gelu(x W + b)) word_tableᵀ + bias: a dense layer, GELU, a
    norm, then the word embeddings themselves as the output matrix, or
    mlm.decoder in the rare models where the two are not tied.

    Parameters
    ----------
    last_hidden_state : ndarray of shape (B, T, H)
    params : dict
        The whole tree: "mlm", and the tied "embeddings".
    config : BertConfig
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, T, V)
        Logits; softmax over the last axis gives probabilities.

    Raises
    ------
    BertError
        If the model has no MLM head.

    Trace
    -----
    mlm.transform : (B, T, H)
    mlm.activated : (B, T, H)
    mlm.norm : (B, T, H)
    mlm.logits : (B, T, V)

    Source: Devlin et al. 2018, section 3.1, task 1.
    """
    mlm = require_head(params, "mlm", "masked-word (MLM)")
    require_config(config)
    check_vectors("last_hidden_state", last_hidden_state, mlm["transform"]["W"])
    check_trace(trace)
    trace = branch(trace, "mlm")
    transform = linear(last_hidden_state, **mlm["transform"])  # (B, T, H)
    activated = ACTIVATIONS[config.hidden_act](transform)
    norm = layer_norm(activated, **mlm["norm"], eps=config.layer_norm_eps)
    word_table = require_word_table(params, config)  # (V, H)
    logits = linear(norm, word_table.T, mlm["bias"])  # (B, T, V)
    record(trace, transform=transform, activated=activated, norm=norm, logits=logits)
    return logits


def next_sentence_logits(pooler_output, params, *, trace=None):
    """Score whether the second text follows the first.

    Parameters
    ----------
    pooler_output : ndarray of shape (B, H)
    params : dict
        The whole tree; its "nsp" is used.
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, 2)
        Column 0: it is the next sentence. Column 1: it is not.

    Raises
    ------
    BertError
        If the model has no NSP head or no pooler.

    Trace
    -----
    nsp.logits : (B, 2)

    Source: Devlin et al. 2018, section 3.1, task 2.
    """
    nsp = require_head(params, "nsp", "next-sentence (NSP)")
    check_pooler_output(pooler_output, nsp["W"], "NSP")
    check_trace(trace)
    trace = branch(trace, "nsp")
    logits = linear(pooler_output, **nsp)  # (B, 2)
    record(trace, logits=logits)
    return logits


def sequence_logits(pooler_output, params, *, trace=None):
    """Score every label for each text as a whole.

    pooler_output W + b. Softmax turns the logits of labels that exclude
    each other into probabilities, the logistic function those of labels
    that do not; for regression they are the answer themselves.

    Parameters
    ----------
    pooler_output : ndarray of shape (B, H)
        Or another vector of each text, if config.classifier_pooling says
        that the head was trained on it.
    params : dict
        The whole tree; its "sequence" is used.
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, K)
        A column for each of config.labels.

    Raises
    ------
    BertError
        If the model has no sequence head or no pooler.

    Trace
    -----
    sequence.logits : (B, K)

    Source: Devlin et al. 2018, section 4.1.
    """
    head = require_head(params, "sequence", "sequence-classification")
    check_pooler_output(pooler_output, head["W"], "the sequence head")
    check_trace(trace)
    logits = linear(pooler_output, **head)  # (B, K)
    record(branch(trace, "sequence"), logits=logits)
    return logits


def token_logits(last_hidden_state, params, *, trace=None):
    """Score every label for each token.

    Parameters
    ----------
    last_hidden_state : ndarray of shape (B, T, H)
    params : dict
        The whole tree; its "token" is used.
    trace : dict, optional

    Returns
    -------
    ndarray of shape (B, T, K)
        A column for each of config.labels. The paper reads the label of a
        word from its first piece.

    Raises
    ------
    BertError
        If the model has no token head.

    Trace
    -----
    token.logits : (B, T, K)

    Source: Devlin et al. 2018, section 5.3.
    """
    head = require_head(params, "token", "token-classification")
    check_vectors("last_hidden_state", last_hidden_state, head["W"])
    check_trace(trace)
    logits = linear(last_hidden_state, **head)  # (B, T, K)
    record(branch(trace, "token"), logits=logits)
    return logits


def span_logits(last_hidden_state, params, *, trace=None):
    """Score each token as the start and as the end of the answer.

    A span is scored by its start's logit plus its end's. The span from
    [CLS] to [CLS] stands for "no answer" where a model was trained so.

    Parameters
    ----------
    last_hidden_state : ndarray of shape (B, T, H)
        Of pairs (question, text).
    params : dict
        The whole tree; its "span" is used.
    trace : dict, optional

    Returns
    -------
    start : ndarray of shape (B, T)
    end : ndarray of shape (B, T)

    Raises
    ------
    BertError
        If the model has no span head.

    Trace
    -----
    span.logits : (B, T, 2)

    Source: Devlin et al. 2018, sections 4.2 and 4.3.
    """
    head = require_head(params, "span", "question-answering")
    check_vectors("last_hidden_state", last_hidden_state, head["W"])
    check_trace(trace)
    logits = linear(last_hidden_state, **head)  # (B, T, 2)
    record(branch(trace, "span"), logits=logits)
    return logits[..., 0], logits[..., 1]
