"""Numbers about attention: what heads attend to, and what they move.

A map is probs (T, T): row i is the query that attends, column j the key
attended to. Functions of maps take stacks, (..., T, T), such as one
layer (A, T, T) or the list of L layers (B, A, T, T) that ``bert`` returns.

An attention_mask of shape (T,) goes with the maps of one sentence, a mask
of shape (B, T) with maps of shape (..., B, A, T, T). Attention to a masked
key is not counted, and a masked query gets 0.
"""

from bert_np.analysis.ablation import (
    AblationEffects,
    ablation_effects,
    without_head,
    without_layer,
)
from bert_np.analysis.corpora import Review, Sentence, read_reviews, read_treebank
from bert_np.analysis.differences import align_tokens, map_difference
from bert_np.analysis.examples import Example, Examples, find_examples
from bert_np.analysis.flow import (
    logit_lens,
    rollout,
    summed_weighted_norms,
    top_words,
    weighted_norms,
)
from bert_np.analysis.minimal_pairs import (
    MinimalPair,
    PairScores,
    format_pairs,
    make_pairs,
    score_pairs,
)
from bert_np.analysis.patching import Place, mean_run, run_patched
from bert_np.analysis.probing import ProbeScores, format_probe, probe_layers
from bert_np.analysis.statistics import (
    attention_distance,
    attention_entropy,
    attention_masses,
    head_distances,
)
from bert_np.analysis.summary import (
    HeadSummary,
    summarise_heads,
)
from bert_np.analysis.sweeps import (
    PatchGrid,
    cosine_with,
    head_places,
    logit_difference,
    next_sentence_difference,
    patch_grid,
    position_places,
)
from bert_np.analysis.syntax import (
    RelationScores,
    format_relations,
    score_relations,
)
from bert_np.analysis.words import word_attention

__all__ = [
    "AblationEffects",
    "Example",
    "Examples",
    "HeadSummary",
    "MinimalPair",
    "PairScores",
    "PatchGrid",
    "Place",
    "ProbeScores",
    "RelationScores",
    "Review",
    "Sentence",
    "ablation_effects",
    "align_tokens",
    "attention_distance",
    "attention_entropy",
    "attention_masses",
    "cosine_with",
    "find_examples",
    "format_pairs",
    "format_probe",
    "format_relations",
    "head_distances",
    "head_places",
    "logit_difference",
    "logit_lens",
    "make_pairs",
    "map_difference",
    "mean_run",
    "next_sentence_difference",
    "patch_grid",
    "position_places",
    "probe_layers",
    "read_reviews",
    "read_treebank",
    "rollout",
    "run_patched",
    "score_pairs",
    "score_relations",
    "summarise_heads",
    "summed_weighted_norms",
    "top_words",
    "weighted_norms",
    "without_head",
    "without_layer",
    "word_attention",
]
