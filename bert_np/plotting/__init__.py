"""Pictures of attention: arrays and tokens in, a Figure or a page out."""

from bert_np.plotting.attention_maps import (
    describe_attention,
    plot_attention,
    plot_heads,
    plot_model,
)
from bert_np.plotting.bars import plot_bars, plot_parameters, plot_top_words
from bert_np.plotting.coloured_words import plot_coloured_words
from bert_np.plotting.confusion import plot_confusion
from bert_np.plotting.curves import plot_by_layer, plot_curves
from bert_np.plotting.diagrams import (
    plot_encoder_layer,
    plot_head_matrices,
    plot_split_heads,
)
from bert_np.plotting.differences import plot_difference
from bert_np.plotting.embeddings import plot_embedding_sum
from bert_np.plotting.examples import examples_table, plot_examples
from bert_np.plotting.explorer import explore
from bert_np.plotting.figure import describe
from bert_np.plotting.head_summary import plot_head_summary
from bert_np.plotting.histogram import plot_histogram
from bert_np.plotting.links import plot_links
from bert_np.plotting.minimal_pairs import plot_pairs
from bert_np.plotting.norms import plot_weighted_norms
from bert_np.plotting.overview import plot_mlm_head, plot_overview
from bert_np.plotting.patch_grids import plot_patch_grid
from bert_np.plotting.pieces import plot_word_pieces
from bert_np.plotting.preparation import (
    crop_padding,
    hide_special,
    merge_word_pieces,
    prepare_maps,
)
from bert_np.plotting.probing import plot_probe
from bert_np.plotting.relations import plot_relation_heads, plot_relations
from bert_np.plotting.roofline import plot_roofline
from bert_np.plotting.steps import step_through
from bert_np.plotting.table import attention_table
from bert_np.plotting.tokens import plot_tokens
from bert_np.plotting.viewer import attention_viewer
from bert_np.plotting.worked_example import plot_query_key, plot_steps

__all__ = [
    "attention_table",
    "attention_viewer",
    "crop_padding",
    "describe",
    "describe_attention",
    "examples_table",
    "explore",
    "hide_special",
    "merge_word_pieces",
    "plot_attention",
    "plot_bars",
    "plot_by_layer",
    "plot_coloured_words",
    "plot_confusion",
    "plot_curves",
    "plot_difference",
    "plot_embedding_sum",
    "plot_encoder_layer",
    "plot_examples",
    "plot_head_matrices",
    "plot_head_summary",
    "plot_heads",
    "plot_histogram",
    "plot_links",
    "plot_mlm_head",
    "plot_model",
    "plot_overview",
    "plot_pairs",
    "plot_parameters",
    "plot_patch_grid",
    "plot_probe",
    "plot_query_key",
    "plot_relation_heads",
    "plot_relations",
    "plot_roofline",
    "plot_split_heads",
    "plot_steps",
    "plot_tokens",
    "plot_top_words",
    "plot_weighted_norms",
    "plot_word_pieces",
    "prepare_maps",
    "step_through",
]
