"""Exercises of chapter 09: weight files, names, and a damaged checkpoint."""

import json
import math

import numpy as np

from bert_np.course.exercise import Exercise, Mistake, mistakes


def damage(params):
    """Return the parameters with one fault in one layer, all shapes right."""
    layers = list(params["layers"])
    attention = layers[4]["attention"]
    layers[4] = layers[4] | {
        "attention": attention | {"query": attention["key"], "key": attention["query"]}
    }
    return params | {"layers": layers}


def _file(tensors, padding=0, note="", turn=1):
    """The bytes of a safetensors file; float32 only.

    With turn=-1 the header lists the tensors in another order than the data.
    """
    header, data = {"__metadata__": {"format": "pt" + note}}, b""
    for name, values in tensors.items():
        values = np.array(values, "<f4")
        ends = [len(data), len(data) + values.nbytes]
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": ends,
        }
        data += values.tobytes()
    text = json.dumps(dict(list(header.items())[::turn]), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8 + padding)  # spaces may follow the header
    return len(text).to_bytes(8, "little") + text + data


FILE = _file(
    {"bias": [0.5, -1.5], "weight": [[1, 2, 3], [4, 5, 6]], "scale": [2.0, 4.0, 8.0]}
)
SQUARE = _file({"weight": [[1, 2], [3, 4]], "bias": [7.0, 9.0]}, padding=64)
TURNED = _file(
    {"größe": [[[1, 2, 3]]], "b": [5.0], "ab": [[0.5, -0.25], [8, 9]]}, turn=-1
)
LONG = _file({"a": 7.0, "weight": [[1, 2, 3, 4]]}, note=70000 * "x")


# --------------------------------------------------------------- one tensor


def my_tensor(data, name):
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])[name]
    begin, end = entry["data_offsets"]
    raw = data[8 + length + begin : 8 + length + end]
    return np.frombuffer(raw, "<f4").reshape(entry["shape"])


def _read(data, name, shift=0, kind="<f4"):
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])[name]
    begin, end = entry["data_offsets"]
    start = 8 + length + shift
    return np.frombuffer(data[start + begin : start + end], kind), entry["shape"]


def _eight_bytes_early(data, name):
    """you begin 8 bytes too early: the numbers come after the 8 bytes and
    the header
    """
    values, shape = _read(data, name, shift=-8)
    return values.reshape(shape)


def _from_the_start(data, name):
    """the offsets count from the end of the header, not from the start of
    the file: add 8 + length
    """
    values, shape = _read(data, name, shift=-8 - int.from_bytes(data[:8], "little"))
    return values.reshape(shape)


def _always_the_first(data, name):
    """you always read the first tensor: add the beginning of data_offsets"""
    values, shape = _read(data, name)
    length = int.from_bytes(data[:8], "little")
    return np.frombuffer(data[8 + length :], "<f4")[: values.size].reshape(shape)


def _flat(data, name):
    """the numbers are right: give them their shape"""
    return _read(data, name)[0]


def _turned(data, name):
    """that is transposed: return it as it is stored in the file, the
    transpose comes later
    """
    return my_tensor(data, name).T


def _shape_turned(data, name):
    """the shape is reversed: reshape to the shape in the header"""
    values, shape = _read(data, name)
    return values.reshape(shape[::-1])


def _big_endian(data, name):
    """the bytes of each number are read in the wrong order: little-endian,
    "<f4"
    """
    values, shape = _read(data, name, kind=">f4")
    return values.reshape(shape)


def _in_header_order(data, name):
    """you added up the sizes of the tensors before it in the header: their
    order need not be that of the numbers; data_offsets tells the place
    """
    length, begin = int.from_bytes(data[:8], "little"), 8
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    for other, entry in header.items():
        size = math.prod(entry["shape"])
        if other == name:
            raw = data[length + begin : length + begin + 4 * size]
            return np.frombuffer(raw, "<f4").reshape(entry["shape"])
        begin += 4 * size


def _header_without_spaces(data, name):
    """spaces may follow the header: its length stands in the first 8 bytes"""
    length = int.from_bytes(data[:8], "little")
    end = len(data[8 : 8 + length].rstrip())
    values, shape = _read(data, name, shift=end - length)
    return values.reshape(shape)


def _characters_counted(data, name):
    """the length of the header counts bytes, not characters: some letters
    take two
    """
    length = int.from_bytes(data[:8], "little")
    characters = len(data[8 : 8 + length].decode())
    values, shape = _read(data, name, shift=characters - length)
    return values.reshape(shape)


def _short_length(data, name):
    """the length of the header takes all of the first 8 bytes"""
    return my_tensor(data[:2] + bytes(6) + data[8:], name)


def _two_axes(data, name):
    """a tensor may have any number of axes: reshape to the whole shape"""
    values, shape = _read(data, name)
    return values.reshape(shape[0], -1) if len(shape) > 1 else values


def _draw_file(rng):
    """A file of some tensors in any order, and the name of one."""
    names = rng.permutation(["a", "größe", "weight", "w.b", "é"])[: rng.integers(1, 5)]
    shapes = [rng.integers(1, 4, rng.integers(0, 4)) for _ in names]
    tensors = {n: rng.normal(size=s).tolist() for n, s in zip(names.tolist(), shapes)}
    file = _file(tensors, padding=int(rng.integers(9)), turn=int(rng.choice([-1, 1])))
    return file, str(rng.choice(names))


# ------------------------------------------------------------------- names

PARTS = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "ffn.inner": "intermediate.dense",
    "ffn.outer": "output.dense",
    "ffn_norm": "output.LayerNorm",
}


def my_name(layer, part, array):
    parts = {
        "attention.query": "attention.self.query",
        "attention.key": "attention.self.key",
        "attention.value": "attention.self.value",
        "attention.output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "ffn.inner": "intermediate.dense",
        "ffn.outer": "output.dense",
        "ffn_norm": "output.LayerNorm",
    }
    kinds = {"W": "weight", "gamma": "weight", "b": "bias", "beta": "bias"}
    return f"encoder.layer.{layer}.{parts[part]}.{kinds[array]}"


def _norms_swapped(layer, part, array):
    """the two norms are swapped: the one behind attention is
    attention.output.LayerNorm
    """
    other = {"attention_norm": "ffn_norm", "ffn_norm": "attention_norm"}
    return my_name(layer, other.get(part, part), array)


def _without_self(layer, part, array):
    """query, key and value stand under attention.self"""
    return my_name(layer, part, array).replace("self.", "")


def _one_digit(layer, part, array):
    """layer 11 became layer 1: a layer's number may have two digits"""
    return my_name(str(layer)[0], part, array)


def _gamma_and_beta(layer, part, array):
    """gamma is called weight, and beta bias, in today's files"""
    name = my_name(layer, part, array)
    return name.rsplit(".", 1)[0] + "." + array if "LayerNorm" in name else name


def _layers(layer, part, array):
    """it is "encoder.layer.", without an s"""
    return my_name(layer, part, array).replace("layer", "layers", 1)


def _base_layers(layer, part, array):
    """a layer's number may have two digits, and any number of layers is
    possible
    """
    return my_name(layer % 10, part, array)


def _output_of_attention(layer, part, array):
    """attention's output is attention.output.dense: output.dense belongs to
    the feed-forward network
    """
    return my_name(layer, {"attention.output": "ffn.outer"}.get(part, part), array)


def _beta_as_weight(layer, part, array):
    """beta is called bias, only gamma weight"""
    return my_name(layer, part, array.replace("beta", "gamma"))


def _two_digits(layer, part, array):
    """a layer's number has no leading 0"""
    return my_name(f"{layer:02}", part, array)


def _draw_name(rng):
    """Any part of any layer, and one of its two arrays."""
    part = str(rng.choice(list(PARTS)))
    array = ("gamma", "beta") if "norm" in part else ("W", "b")
    return int(rng.integers(0, 120)), part, array[rng.integers(2)]


EXERCISES = (
    Exercise(
        id="09.tensor",
        title="One tensor from the bytes",
        level=3,
        minutes=10,
        task="Write `my_tensor(data, name)`: data is the whole file as bytes, and name "
        "says which of its tensors to return, one whose dtype is F32. Return it as an "
        "array of the right shape. Use `int.from_bytes`, `json.loads` and "
        "`np.frombuffer`, no other reader.",
        hints=(
            "The first 8 bytes say how long the header is. Where do the numbers "
            "begin, and from where do the offsets count?",
            "The numbers begin at byte 8 + length. Add that to both data_offsets and "
            'cut out the bytes between; then np.frombuffer(raw, "<f4") and reshape.',
        ),
        solution=my_tensor,
        mistakes=mistakes(
            _eight_bytes_early,
            _from_the_start,
            _always_the_first,
            _flat,
            _turned,
            _shape_turned,
            _big_endian,
            _in_header_order,
            _header_without_spaces,
            _characters_counted,
            _short_length,
            _two_axes,
        ),
        cases=(
            (FILE, "weight"),
            (FILE, "scale"),
            (SQUARE, "weight"),
            (SQUARE, "bias"),
            (TURNED, "ab"),
            (TURNED, "größe"),
            (TURNED, "b"),
            (LONG, "weight"),
            (LONG, "a"),
        ),
        draw=_draw_file,
    ),
    Exercise(
        id="09.name",
        title="From our name to theirs",
        level=2,
        minutes=8,
        task="Write `my_name(layer, part, array)`: HuggingFace's name of an array of "
        'an encoder layer. `my_name(3, "ffn.inner", "W")` is '
        '"encoder.layer.3.intermediate.dense.weight". The eight parts and four '
        "arrays stand in the table above.",
        hints=(
            "A dict from our eight parts to theirs, and one from our four array names "
            'to "weight" or "bias".',
            'Both norms are called LayerNorm: "attention.output.LayerNorm" belongs to '
            'attention_norm, "output.LayerNorm" to ffn_norm.',
        ),
        solution=my_name,
        mistakes=mistakes(
            _norms_swapped,
            _without_self,
            _one_digit,
            _gamma_and_beta,
            _layers,
            _base_layers,
            _output_of_attention,
            _beta_as_weight,
            _two_digits,
        ),
        cases=(
            *((11, part, "gamma" if "norm" in part else "W") for part in PARTS),
            *((2, part, "beta" if "norm" in part else "b") for part in PARTS),
            (0, "ffn.inner", "b"),
            (123, "attention.key", "W"),
        ),
        draw=_draw_name,
    ),
    Exercise(
        id="09.square",
        title="What a shape check does not see",
        level=2,
        minutes=5,
        task="BERT-Base (12 layers and pooler, without heads) has 73 weight matrices W "
        "of linear maps. Somebody forgets the transpose for all of them. Set "
        "`unseen` to the number of matrices that still have the right shape.",
        hints=(
            "A transposed matrix has another shape, unless it is square. Which maps "
            "go from H to H?",
            "Four square ones in each layer: query, key, value, output. And one "
            "more, outside the layers.",
        ),
        solution=49,
        name="unseen",
        why="Four square matrices in each of 12 layers and the pooler's: 49, whose "
        "shape a transpose does not change.",
        mistakes=(
            Mistake(
                24,
                "those are the ones that the check does see: the two of each "
                "feed-forward network",
            ),
            Mistake(48, "the pooler's matrix is square too"),
            Mistake(
                36,
                "query, key and value, and what else? Attention has an output "
                "map, and there is the pooler",
            ),
            Mistake(
                37, "you left out one square matrix in each layer: attention has four"
            ),
            Mistake(0, "a square matrix keeps its shape when it is transposed"),
        ),
    ),
    Exercise(
        id="09.damaged",
        title="Find the fault in a checkpoint",
        level=2,
        minutes=7,
        task="`damaged` holds MiniLM's parameters with one fault in one layer. Run "
        "both on our sentence with a trace each, and compare. Set `fault` to the "
        'first stage that differs, such as "layers.1.ffn.inner". Then explain to '
        "yourself what is wrong with the file.",
        hints=(
            "Two empty dicts: bert_np.bert(ids, params, config, trace=a), the same "
            "with damaged and trace=b. Then print(bert_np.compare(a, b)).",
            "The first stage that differs is a query. Compare it with the key of the "
            "healthy run in the same layer.",
        ),
        solution="layers.4.attention.q",
        name="fault",
        why="Query and key of layer 4 are exchanged: both are (H, H), so every shape "
        "is right.",
        mistakes=(
            Mistake(
                "layers.4.attention.k",
                "k differs as well; which stage comes before it?",
            ),
            Mistake(
                "layers.4.attention.scores",
                "the scores are wrong because their vectors are wrong: look earlier",
            ),
            Mistake(
                "layers.5.attention.q",
                "layer 5 is wrong because its input from "
                "layer 4 is: take the first stage",
            ),
            Mistake(
                "layers.4.attention.query",
                "that is the name of the parameters: "
                "the stage, which is what the run "
                "computes with them, is called q",
            ),
            Mistake(
                "layers.4.attention",
                'name the stage in it, such as "layers.4.attention.v"',
            ),
        ),
    ),
)
