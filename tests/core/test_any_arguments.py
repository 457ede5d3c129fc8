"""Any argument of any public function: a result, or the one error.

Right arguments are found by the names of the parameters; then each is
replaced by each of the ODD values. A new function is tried by itself; a
new parameter that it needs gets a right value in RIGHT.
"""

import importlib
import inspect
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bert_np
from bert_np import BertError, analysis, fast, plotting
from bert_np.analysis import Place
from bert_np.errors import short
from bert_np.files import pretrained
from bert_np.tokenizer import SPECIAL_TOKENS, Tokenizer
from bert_np.training import adam, run
from bert_np.training.pretraining import pretraining_logits
from bert_np.training.settings import FineTuningSettings, TrainingSettings

SIZES = {"hidden_size": 6, "num_attention_heads": 3, "max_position_embeddings": 7}
CONFIG = bert_np.BertConfig(9, num_hidden_layers=2, intermediate_size=8, **SIZES)
PARAMS = bert_np.init_params(CONFIG, np.random.default_rng(0), heads=True)
TOKENIZER = Tokenizer.from_tokens([*SPECIAL_TOKENS, "a", "b", "c", "##d"])
IDS, TRACE = np.array([[2, 5, 6, 3, 0], [2, 7, 8, 5, 3]]), {}
OUT = bert_np.bert(IDS, PARAMS, CONFIG, trace=TRACE)
MAPS = np.array(OUT["attention_probs"])  # (L, B, A, T, T)

# For almost every parameter a fault; for a few an odd but right value.
ODD = [None, True, 0, -1, 1.5, float("nan"), 2**70, -(10**5000), "", "x", b"x"]
ODD += [[], (), {}, [[1]], [[1], [1, 2]], [["x"]], object(), {"x": 1}, ["x"], [None]]
ODD += [np.int64(3), np.array(1), np.zeros((0, 5)), np.full((2, 5), np.nan)]
ODD += [np.zeros((2, 5), kind) for kind in ("?", "u1", ">i4", "f2", "c8", "U1", "O")]
ODD += [np.ma.masked_equal(IDS, 0), np.full((2, 5), 2**63, "u8"), IDS.astype("M8[s]")]
ODD += [int]  # the last: it can be called

RIGHT = {"input_ids": IDS, "ids": IDS[0], "attention_mask": IDS > 0}
RIGHT |= {"params": PARAMS, "config": CONFIG, "values": CONFIG.to_dict()}
RIGHT |= {"prepared": fast.prepare(PARAMS, CONFIG), "rng": np.random.default_rng(0)}
RIGHT |= {"text": "a [MASK]", "texts": ["a b", "c"], "a": "a", "b": "b"}
RIGHT |= {"question": "c", "tokenizer": TOKENIZER, "tokens": list(TOKENIZER.tokens)[:5]}
RIGHT |= {"last_hidden_state": OUT["last_hidden_state"], "logits": np.zeros((1, 2, 9))}
RIGHT |= {"pooler_output": OUT["pooler_output"], "probs": MAPS[0, 0]}
RIGHT |= {"trace": TRACE, "trace_a": TRACE, "trace_b": TRACE, "layer": 0, "head": 0}
RIGHT |= {"name_or_folder": "toy", "folder": "new", "words": ["a", "b"], "length": 5}
RIGHT |= dict.fromkeys("qkv", MAPS[0, 0, 0]) | {"query": 1, "points": {"a": (1, 1)}}
RIGHT |= {"measures": {"entropy": np.ones((2, 3))}, "bandwidth": 1.0, "products": 1.0}
RIGHT |= {"message": "no", "segment_ids": 0 * IDS, "offsets": [(0, 1)] * 5}
RIGHT |= {"word_ids": [None] * 5}
RIGHT |= {"rows": bert_np.parameter_ledger(CONFIG)}
RIGHT |= {"prediction_id": "03.zero", "guess": "no"}
RIGHT |= {"exercise_id": "03.softmax", "answer": bert_np.softmax, "number": 1}
RIGHT |= {"function": bert_np.softmax}
BATCH = {"input_ids": IDS, "segment_ids": 0 * IDS, "attention_mask": IDS > 0}
BATCH |= {"mlm_labels": np.where(IDS == 7, 5, -100), "nsp_labels": np.array([0, 1])}
SETTINGS, RNG = TrainingSettings(1, warmup_steps=0), np.random.default_rng(0)
RUN = run.start_run(PARAMS, RNG)
RIGHT |= {"batch": BATCH, "make_batch": lambda rng: BATCH, "settings": SETTINGS}
RIGHT |= {"run": RUN, "grads": PARAMS, "state": RUN["adam"], "path": "run.npz"}
RIGHT |= {"rate": 0.1, "max_norm": 1.0, "labels": np.array([[1, -100]]), "step": 0}
RIGHT |= {"special_ids": range(5), "mask_id": 4, "vocab_size": 9, "pad_token_id": 0}
RIGHT |= {"peak": 1.0, "warmup_steps": 1, "total_steps": 2}
RIGHT |= {"amounts": {"a": 1}, "curves": [1, 2], "ndim": 2, "num_heads": 2}
RIGHT |= dict.fromkeys(("word", "position", "segment", "output", "x"), np.eye(5, 4))
RIGHT |= {"patches": {Place("ffn"): TRACE}, "places": [[Place("ffn", 0)]]}
RIGHT |= {
    "inputs": {"input_ids": IDS},
    "other_inputs": {"input_ids": IDS[:, [0, 2, 1, 3, 4]]},
}
RIGHT |= {"answer": lambda out: out["last_hidden_state"][:, 0, 0], "traces": [TRACE]}
RIGHT |= {"vector": np.ones(6), "change": np.eye(2), "first": MAPS[0, 0, 0]}
RIGHT |= {"second": MAPS[0, 0, 1], "other_tokens": ["a", "c"]}
PAIRS = {"logits": np.zeros((2, 2)), "labels": np.array([0, 1])}
PARSED = analysis.Sentence(("a", "b"), ("X", "X"), (1, -1), ("x", "root"), "")
SCORES = analysis.score_relations([PARSED] * 2, PARAMS, CONFIG, TOKENIZER, least=1)
RIGHT |= {"sentences": [PARSED] * 50, "scores": SCORES, "relation": "x"}
TWO = ("{first} {second} *a*", "{first} {second} *b*")
FOUND = analysis.find_examples(["a b"], PARAMS, CONFIG, TOKENIZER, head=(0, 0))
MODEL = PARAMS, CONFIG, TOKENIZER
PROBE_SCORES = analysis.probe_layers([PARSED] * 5, *MODEL, rng=RIGHT["rng"])
MADE = analysis.make_pairs(TWO, first=["a", "c"], second=["b"])
RIGHT |= {"templates": TWO, "pairs": MADE}
PAIR_SCORES = analysis.score_pairs(MADE, PARAMS, CONFIG, TOKENIZER)
# Their errors are their own.
CALLED = {"report", "make_batch", "after_step", "stop_when", "run_all", "answer"}
CALLED |= {"pattern", "label"}
MAP, ALL = {"probs": MAPS[0, 0, 0]}, {"probs": MAPS[:, 0]}
FOLDER = pretrained.PACKAGED["toy"]
MOVED = {"pooler": {"dense": TRACE["pooler"]["dense"] + 1}}
# What a function needs that its namesakes do not.
OWN = {
    "compare": {"trace_b": MOVED},
    "Tokenizer": {"tokens": TOKENIZER.tokens},
    "Tokenizer.from_tokens": {"tokens": TOKENIZER.tokens},
    "BertConfig.from_json": {"path": FOLDER / "config.json"},
    "Tokenizer.from_vocab": {"path": FOLDER / "vocab.txt"},
    "training.losses.next_sentence_cross_entropy": PAIRS,
    "training.masking.mask_tokens": {"rate": 0.15},
    "analysis.logit_difference": {"position": 1, "word": 2, "other": 3},
    "analysis.find_examples": {"head": (1, 2)},
    "plotting.examples_table": {"examples": FOUND},
    "plotting.plot_examples": {"examples": FOUND},
    "analysis.make_pairs": {"first": ["a"], "second": ["b"]},
    "analysis.format_pairs": {"scores": PAIR_SCORES},
    "analysis.format_probe": {"scores": PROBE_SCORES},
    "plotting.plot_probe": {"scores": PROBE_SCORES},
    "plotting.plot_pairs": {"scores": PAIR_SCORES},
    "plotting.crop_padding": MAP | {"attention_mask": [1] * 5},
    "plotting.plot_weighted_norms": MAP | {"norms": MAP["probs"]},
    "plotting.describe": {"figure": plotting.plot_bars({"a": 1})},
    "plotting.plot_top_words": {"probs": [0.5, 0.25]},
    "plotting.plot_head_matrices": {"hidden_size": 6},
    "plotting.plot_histogram": {"samples": {"a": [1.0, 2.0]}},
    "plotting.plot_word_pieces": {"word": "ad", "vocab": TOKENIZER.vocab},
}
ONE_MAP = ["attention_table", "hide_special", "merge_word_pieces"]
ONE_MAP += ["plot_attention", "plot_links", "prepare_maps"]
ALL_MAPS = ["attention_viewer", "describe_attention", "plot_model"]
# The heads that are added for a task, beside the body.
TASK_HEADS = ("sequence", "token", "span")
TUNED = bert_np.init_params(CONFIG, np.random.default_rng(0), heads=TASK_HEADS)
OWN |= {f"{head}_logits": {"params": TUNED} for head in TASK_HEADS}
OWN |= {name: {"params": TUNED} for name in ("classify", "tag", "answer")}
OWN["search"] = {"query": "a"}
X, LAYER, TABLES = OUT["last_hidden_state"], PARAMS["layers"][0], PARAMS["embeddings"]
HEADS, ONES = np.ones((2, 3, 5, 2)), np.ones(6)
OWN |= {
    "add_and_norm": {"x": X, "update": X, "params": LAYER["ffn_norm"]},
    "embed": {"params": TABLES},
    "encoder": {"x": X, "params": PARAMS["layers"]},
    "encoder_layer": {"x": X, "params": LAYER},
    "feed_forward": {"x": X, "params": LAYER["ffn"]},
    "layer_norm": {"x": X, "gamma": ONES, "beta": ONES, "eps": 1e-12},
    "linear": {"x": X, "W": np.eye(6), "b": ONES},
    "merge_heads": {"x": HEADS},
    "pool": {"x": X, "params": PARAMS["pooler"]},
    "scaled_dot_product": {"q": HEADS, "k": HEADS, "v": HEADS},
    "self_attention": {"x": X, "params": LAYER["attention"]},
    "split_heads": {"x": X},
}
OWN |= {f"plotting.{n}": MAP for n in ONE_MAP}
OWN |= {f"plotting.{name}": ALL for name in ALL_MAPS}
OWN |= {f"analysis.{n}": {"probs": MAPS} for n in ("head_distances", "rollout")}
EXAMPLES = [("a b", "x"), ("b c", "y"), ("c a", "x")]
TAGGED = [(["a", "b"], ["x", "y"])]
BODY = {part: PARAMS[part] for part in ("embeddings", "layers", "pooler")}
TUNED = BODY | {"sequence": {"W": np.ones((6, 2), "f4"), "b": np.zeros(2, "f4")}}
TASK = {key: BATCH[key] for key in list(BATCH)[:3]} | {"labels": np.array([0, 1])}
STEP = {"step": 0, "params": TUNED, "adam": adam.init_adam(TUNED)}
TUNING_SETTINGS = FineTuningSettings(epochs=1)
RIGHT |= {"examples": EXAMPLES, "training": EXAMPLES, "asked": EXAMPLES, "share": 0.5}
RIGHT |= {"model": (PARAMS, CONFIG, TOKENIZER), "lengths": [3, 4], "batch_size": 2}
RIGHT |= {"predictions": [0, 1], "count": 2, "penalty": 0.1, "matrix": [[1, 0], [0, 1]]}
NUMBERS = {"logits": np.zeros((2, 2)), "labels": np.ones((2, 2))}
TUNE = {"params": TUNED, "settings": TUNING_SETTINGS, "batch": TASK, "run": STEP}
TUNED_BY = ["fine_tuning_step", "group_rates", "loss_and_gradients", "task_logits"]
LABELLED = replace(CONFIG, labels=("x", "y"))
OWN |= {f"training.fine_tuning.{name}": TUNE for name in TUNED_BY}
OWN |= {
    "plotting.plot_coloured_words": {"values": {"x": [0.5, 0.25]}},
    "plotting.plot_confusion": {"labels": ["a", "b"]},
    "training.word_importance.word_importance": {"params": TUNED, "config": LABELLED},
    "training.baselines.logistic_regression": {"x": np.eye(2), "labels": [0, 1]},
    "training.baselines.majority_answers": {"training": TAGGED, "asked": TAGGED},
    "training.examples.encode_examples": {"config": LABELLED},
    "training.examples.read_examples": {"path": "examples.tsv"},
    "training.fine_tune.evaluate_model": {"model": (TUNED, LABELLED, TOKENIZER)},
    "training.fine_tuning.task_loss": TUNE | PAIRS,
    "training.losses.binary_cross_entropy": NUMBERS,
    "training.losses.squared_error": NUMBERS,
    "training.metrics.accuracy": {"labels": [0, 1]},
    "training.metrics.confusion_matrix": {"labels": [0, 1]},
}
LOGITS_TRACE = {}
MLM, NSP = pretraining_logits(PARAMS, CONFIG, BATCH, trace=LOGITS_TRACE)
OWN["training.pretraining.gradients"] = {
    "trace": LOGITS_TRACE,
    "d_mlm_logits": MLM,
    "d_nsp_logits": NSP,
}
MODULES = ["analysis", "course", "plotting", "web"]
MODULES += [f"training.{name}" for name in ("adam", "losses", "loop", "masking")]
MODULES += ["training.pretraining", "training.run"]
TUNING = (
    "baselines",
    "examples",
    "fine_tune",
    "fine_tuning",
    "metrics",
    "word_importance",
)
MODULES += [f"training.{name}" for name in TUNING]
METHODS = {
    bert_np.BertConfig: ["from_dict", "from_json"],
    Tokenizer: ["from_tokens", "from_vocab"],
    TOKENIZER: ["encode", "encode_batch", "decode", "tokenize"],
}


def public_functions():
    """{name: function} of what the package offers, classes and methods too."""
    found = {name: getattr(bert_np, name) for name in bert_np.__all__}
    for name in MODULES:
        module = importlib.import_module(f"bert_np.{name}")
        for key in getattr(module, "__all__", vars(module)):
            own = getattr(module, key)
            here = getattr(own, "__module__", "").startswith(module.__name__)
            if here and inspect.isfunction(own) and key[0] != "_" and key != "main":
                found[f"{name}.{key}"] = own
    for owner, methods in METHODS.items():
        found |= {m.__qualname__: m for m in (getattr(owner, n) for n in methods)}
    return found


FUNCTIONS = public_functions()
DRAWING = ("plotting.plot_", "plotting.explore", "plotting.attention_viewer")
MARKS = {name: [pytest.mark.slow] * name.startswith(DRAWING) for name in FUNCTIONS}


def refuse(name):
    raise BertError(f"{name} is asked of no server")


def arguments_of(name):
    """(the parameters to try, right values for those that need one)."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    parameters = [
        p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    given = RIGHT | OWN.get(name, {})
    right = {p.name: given[p.name] for p in parameters if p.default is p.empty}
    return [p.name for p in parameters], right


@pytest.mark.filterwarnings("ignore:padding is not only on the right")
@pytest.mark.parametrize("name", [pytest.param(n, marks=MARKS[n]) for n in MARKS])
def test_any_argument_is_answered_or_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretrained, "fetch_from_hub", refuse)
    run.save_run("run.npz", RUN, CONFIG, SETTINGS)
    Path("examples.tsv").write_text("a b\tx\n")
    parameters, right = arguments_of(name)
    FUNCTIONS[name](**right)
    foreign = []
    for parameter in parameters:
        for odd in ODD[:-1] if parameter in CALLED else ODD:
            try:
                FUNCTIONS[name](**right | {parameter: deepcopy(odd)})
            except BertError as error:
                assert 0 < len(str(error)) <= 300
            except Exception as error:
                foreign.append(f"{parameter} = {short(odd)}: {error!r:.90}")
    assert foreign == []
