"""BERT in plain NumPy: functions over a nested dict of parameters."""

from bert_np.attention import (
    create_attention_mask,
    merge_heads,
    scaled_dot_product,
    self_attention,
    split_heads,
)
from bert_np.config import BertConfig
from bert_np.embeddings import embed
from bert_np.encoder import encoder, encoder_layer
from bert_np.errors import BertError
from bert_np.feed_forward import feed_forward
from bert_np.heads import masked_lm_logits, next_sentence_logits
from bert_np.model import bert
from bert_np.parameters import (
    check_params,
    count_params,
    format_ledger,
    init_params,
    parameter_ledger,
    parameter_shapes,
)
from bert_np.pooler import pool
from bert_np.trace import compare

