"""Figures of attention: arrays and tokens in, a matplotlib Figure out."""

from bert_np.plotting.attention_maps import (
    describe_attention, plot_attention, plot_heads, plot_model)
from bert_np.plotting.preparation import (
    crop_padding, hide_special, merge_word_pieces, prepare)

__all__ = [
    "crop_padding", "describe_attention", "hide_special", "merge_word_pieces",
    "plot_attention", "plot_heads", "plot_model", "prepare",
]
