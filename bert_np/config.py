"""The sizes and switches of a BERT: the fields of a ``config.json``."""

import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from bert_np.errors import BertError, did_you_mean, require_bool, short
from bert_np.functional import ACTIVATIONS

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
# How one vector is made from a text, in the order in which several are joined.
POOLINGS = (
    "cls",
    "max",
    "mean",
    "mean_sqrt_len_tokens",
    "weightedmean",
    "lasttoken",
)
# What a sequence head gives a text: one label, any number of labels, numbers.
PROBLEMS = (
    "single_label_classification",
    "multi_label_classification",
    "regression",
)
# Beginnings of the class names of other models, whose tensors would fit BERT's.
OTHER_CLASSES = (
    *("Roberta", "XLMRoberta", "Camembert", "Data2VecText", "Ernie", "Electra"),
    *("LayoutLM", "MegatronBert", "Splinter", "DistilBert", "Albert", "JinaBert"),
)
CLASSIFIER_POOLINGS = ("pooler", "mean")
MOST_LABELS = 2**20
# Fields that to_dict writes only where they differ from the default.
OPTIONAL = (
    "pooling",
    "labels",
    "problem_type",
    "classifier_pooling",
    "no_answer_threshold",
    "tie_word_embeddings",
)
# Architectures whose positions start at padding_idx + 1, otherwise like BERT.
SHIFTED_POSITIONS = ("roberta", "xlm-roberta", "camembert", "data2vec-text")
# Keys of a config.json that are checked, though they are no fields.
LABEL_KEYS = ("id2label", "label2id", "num_labels")
DECODER_KEYS = ("is_decoder", "add_cross_attention", "is_encoder_decoder")
ALTERED_KEYS = ("pruned_heads", "quantization_config")
CHECKED = (
    *LABEL_KEYS,
    *DECODER_KEYS,
    *ALTERED_KEYS,
    "model_type",
    "architectures",
    "position_embedding_type",
    "embedding_size",
    "tokenizer_class",
)


@dataclass(frozen=True)
class BertConfig:
    """The sizes and switches of a BERT; the defaults are BERT-Base.

    Field names are those of HuggingFace's ``config.json``. A value that
    no BERT can have raises BertError. Four fields are not HuggingFace's:

    - `pooling` says how embed_sentences makes one vector from a text;
      several ways are joined by "+", as in "cls+mean".
    - `labels` are the names of what the sequence or the token head tells
      apart, in the order of its logits: id2label as a tuple.
    - `classifier_pooling` is the vector that the sequence head reads:
      "pooler", as the paper has it, or "mean", the mean of the last
      hidden states of the real tokens.
    - `no_answer_threshold` is the threshold of `answer`: None for a model
      that was not trained on questions without an answer.

    Source: Devlin et al. 2018, section 3 (sizes) and appendix A.2
    (dropout, GELU).
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    pooling: str = "mean"
    labels: tuple = ("LABEL_0", "LABEL_1")
    problem_type: str | None = None
    classifier_pooling: str = "pooler"
    no_answer_threshold: float | None = None
    tie_word_embeddings: bool = True

    def __post_init__(self):
        for name in SIZES:
            _require_size(name, getattr(self, name))
        if self.hidden_size % self.num_attention_heads:
            raise BertError(
                f"num_attention_heads = {short(self.num_attention_heads)} must divide "
                f"hidden_size = {short(self.hidden_size)}"
            )
        if _is_none_of(self.hidden_act, ACTIVATIONS):
            _refuse("hidden_act", self.hidden_act, f"one of {', '.join(ACTIVATIONS)}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            _require_number(name, getattr(self, name), "0 <= rate <= 1", 0.0, 1.0)
        _require_number(
            "initializer_range", self.initializer_range, "a finite number >= 0", 0.0
        )
        _require_number("layer_norm_eps", self.layer_norm_eps, "0 < eps < 1", 0.0, 1.0)
        if self.layer_norm_eps in (0, 1):
            _refuse("layer_norm_eps", self.layer_norm_eps, "0 < eps < 1")
        check_pooling(self.pooling)
        require_bool("tie_word_embeddings", self.tie_word_embeddings)
        self._check_labels()
        if self.pad_token_id is not None:
            self._check_pad_token_id()

    def _check_pad_token_id(self):
        is_int = type(self.pad_token_id) is int
        if not is_int or not 0 <= self.pad_token_id < self.vocab_size:
            allowed = f"None or an int in 0..{short(self.vocab_size - 1)}"
            _refuse("pad_token_id", self.pad_token_id, allowed)

    def _check_labels(self):
        labels, problem = self.labels, self.problem_type
        if not isinstance(labels, (list, tuple)) or not labels:
            _refuse("labels", labels, "a tuple of one or more str")
        for i, label in enumerate(labels):
            if not isinstance(label, str):
                _refuse(f"labels[{i}]", label, "a str")
        object.__setattr__(self, "labels", tuple(labels))
        if problem is not None and _is_none_of(problem, PROBLEMS):
            _refuse("problem_type", problem, f"None or one of {', '.join(PROBLEMS)}")
        if problem == PROBLEMS[0] and len(labels) == 1:
            raise BertError(
                f"problem_type = {problem!r} with one label, {short(labels[0])}; "
                "allowed: two or more labels, or problem_type = 'regression'"
            )
        way = self.classifier_pooling
        if _is_none_of(way, CLASSIFIER_POOLINGS):
            _refuse("classifier_pooling", way, f"one of {CLASSIFIER_POOLINGS}")
        if self.no_answer_threshold is not None:
            _require_number(
                "no_answer_threshold",
                self.no_answer_threshold,
                "a finite number, None",
                -sys.float_info.max,
            )

    @property
    def problem(self):
        """One of PROBLEMS, also where problem_type is None.

        A single label then means a number to be predicted, and several
        labels exclude each other, as in HuggingFace's loss.
        """
        if self.problem_type is not None:
            return self.problem_type
        return "regression" if len(self.labels) == 1 else PROBLEMS[0]

    @property
    def head_size(self):
        """D, the length of one head's query, key and value vectors."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def base(cls):
        """BERT-Base: 12 layers, hidden size 768, 12 heads."""
        return cls()

    @classmethod
    def large(cls):
        """BERT-Large: 24 layers, hidden size 1024, 16 heads."""
        return cls(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        )

    @classmethod
    def from_dict(cls, values):
        """Read the entries of a ``config.json``.

        Keys that do not change BERT's mathematics are ignored. Those that
        announce another architecture are refused, and so is a misspelled
        key. The sizes must be given, except type_vocab_size; other
        fields that are absent take their defaults.

        Parameters
        ----------
        values : dict
            The decoded JSON object.

        Raises
        ------
        BertError
            If the model is not a BERT, a size is missing, or a value is
            impossible.
        """
        if not isinstance(values, dict):
            _refuse("config", values, "a JSON object")
        _require_bert(values)
        _refuse_other_architectures(values)
        _require_sizes(values)
        known = {k: v for k, v in values.items() if k in cls.__dataclass_fields__}
        return cls(**known | {"labels": _read_labels(values)})

    @classmethod
    def from_json(cls, path):
        """Read a ``config.json`` file; see from_dict."""
        return cls.from_dict(read_json(path))

    def to_dict(self):
        """The fields as a dict that ``from_dict`` and HuggingFace read."""
        values = {"model_type": "bert", **asdict(self)}
        for name in OPTIONAL:
            if values[name] == getattr(BertConfig, name):
                del values[name]
        if "labels" in values:
            labels = values.pop("labels")
            values["id2label"] = {str(i): label for i, label in enumerate(labels)}
            values["label2id"] = {label: i for i, label in enumerate(labels)}
        return values


def require_config(config):
    """Refuse what is not a BertConfig."""
    if not isinstance(config, BertConfig):
        raise BertError(f"config is {type(config).__name__}, allowed: BertConfig")


def check_pooling(pooling):
    """Refuse what is not one of POOLINGS, or several joined by "+"."""
    ways = pooling.split("+") if isinstance(pooling, str) else []
    if not ways or not set(ways) <= {*POOLINGS} or len(set(ways)) < len(ways):
        _refuse("pooling", pooling, f"one or more, joined by '+', of {POOLINGS}")


def read_json(path):
    """Read a JSON file strictly.

    A byte-order mark, bytes that are not UTF-8, a key given twice, NaN
    and Infinity are refused.

    Raises
    ------
    BertError
        Naming the file and what is wrong with it.
    """
    if not isinstance(path, (str, Path)):
        raise BertError(f"path is {type(path).__name__}, allowed: a str or a Path")
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BertError(f"{path.name}: not UTF-8 at byte {error.start}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", error)
        raise BertError(f"{path.name}: cannot be read ({reason})") from None
    if text.startswith("\ufeff"):
        raise BertError(f"{path.name}: begins with a byte-order mark; save it without")
    return parse_json(text, path.name)


def parse_json(text, source):
    """Decode JSON text strictly; ``source`` names it in the message."""
    import json  # `import bert_np` stays quick

    def unique(pairs):
        values = dict(pairs)
        if len(values) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise BertError(f"{source}: the key {twice[:80]!r} appears twice")
        return values

    def constant(name):
        raise BertError(f"{source}: {name} is not a JSON value")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except BertError:
        raise
    except (ValueError, RecursionError) as error:
        raise BertError(f"{source}: not valid JSON ({error})") from None


def _require_bert(values):
    model_type, names = values.get("model_type"), values.get("architectures")
    names = names if isinstance(names, list) else [names]
    if model_type == "bert":
        if any(isinstance(n, str) and n.startswith(OTHER_CLASSES) for n in names):
            raise BertError(
                f"config model_type = 'bert', but architectures = {short(names)}; "
                "correct the wrong one"
            )
        return
    if model_type is not None:
        raise BertError(
            f"config model_type = {short(model_type)}, allowed: 'bert'. "
            f"{_why_not(model_type)}"
        )
    if not names or not isinstance(names[0], str) or not names[0].startswith("Bert"):
        raise BertError(
            "config has no model_type, and architectures = "
            f"{short(values.get('architectures'))} does not begin with a Bert class; "
            'if it is a BERT, add "model_type": "bert"'
        )


def _why_not(model_type):
    """Say what differs, although names and shapes may look like BERT's."""
    if model_type in SHIFTED_POSITIONS:
        return "Its tensors fit BERT's, but positions start at padding_idx + 1."
    return "Its tensors may fit BERT's, but it computes something else."


def _refuse_other_architectures(values):
    for key in DECODER_KEYS:
        if values.get(key):
            _refuse(f"config {key}", values[key], "false: BERT is an encoder")
    kind = values.get("position_embedding_type", "absolute")
    if kind not in ("absolute", None):
        _refuse("config position_embedding_type", kind, "'absolute'")
    for key in ALTERED_KEYS:
        if values.get(key):
            _refuse(f"config {key}", values[key], "none: an unaltered BERT")
    size = values.get("embedding_size")
    if size is not None and size != values.get("hidden_size", BertConfig.hidden_size):
        _refuse("config embedding_size", size, "the same as hidden_size")


def _require_sizes(values):
    """Refuse a misspelled key, and sizes that are left out."""
    names = BertConfig.__dataclass_fields__.keys() - {"labels"}
    names |= {*CHECKED} - {*LABEL_KEYS}  # old files have _num_labels
    absent = [name for name in names if name not in values]
    for key in values.keys() - BertConfig.__dataclass_fields__.keys() - {*CHECKED}:
        near = did_you_mean(str(key), absent)
        if near:
            raise BertError(f"config has the key {short(key)}{near}")
    missing = [name for name in SIZES[:-1] if name in absent]
    if missing:
        raise BertError(
            f"config lacks {', '.join(missing)}: a file must give each size"
        )


def _read_labels(values):
    """Read id2label, label2id and num_labels, which must agree."""
    names, ids, count = (values.get(key) for key in LABEL_KEYS)
    for key, given in zip(LABEL_KEYS, (names, ids)):
        if given is not None and not isinstance(given, dict):
            _refuse(f"config {key}", given, "a JSON object")
    if count is not None and (type(count) is not int or not 1 <= count <= MOST_LABELS):
        _refuse("config num_labels", count, f"an int in 1..{MOST_LABELS}")
    if names:
        labels = _in_order("id2label", names.items())
    elif ids:
        labels = _in_order("label2id", [(i, label) for label, i in ids.items()])
    else:
        labels = tuple(f"LABEL_{i}" for i in range(count or len(BertConfig.labels)))
    if count not in (None, len(labels)):
        raise BertError(
            f"config num_labels = {count}, but id2label has {len(labels)} labels: "
            f"{short(labels)}"
        )
    _check_inverse(ids, labels)
    return labels


def _in_order(key, pairs):
    """The labels of pairs (id, label), whose ids must be 0, 1, 2, ..."""
    labels = {str(i): label for i, label in pairs}
    wanted = [str(i) for i in range(len(labels))]
    if labels.keys() != set(wanted):
        _refuse(f"config {key} has the ids", list(labels), f"0..{len(labels) - 1}")
    for label in labels.values():
        if not isinstance(label, str):
            _refuse(f"config {key} has the label", label, "a str")
    return tuple(labels[i] for i in wanted)


def _check_inverse(ids, labels):
    """Refuse a label2id that contradicts id2label."""
    for label in [*labels, *ids] if ids else ():
        i = ids.get(label)
        if type(i) is not int or not 0 <= i < len(labels) or labels[i] != label:
            raise BertError(
                f"config label2id gives {short(label)} the id {short(i)}, but id2label "
                f"is {short(dict(enumerate(labels)), 100)}"
            )


def _require_size(name, value):
    if type(value) is not int or value < 1:
        _refuse(name, value, "an int >= 1")


def _is_none_of(value, names):
    return not isinstance(value, str) or value not in names


def _require_number(name, value, allowed, lowest, highest=sys.float_info.max):
    if type(value) not in (int, float) or not lowest <= value <= highest:  # or NaN
        _refuse(name, value, allowed)


def _refuse(name, value, allowed):
    raise BertError(f"{name} = {short(value)}, allowed: {allowed}")
