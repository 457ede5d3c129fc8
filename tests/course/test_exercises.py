"""The cases of the exercises: they refuse what is wrong, and nothing else."""

import json
import math
import re

import numpy as np
import pytest
from course.wrong_solutions import wrong_solutions

import bert_np
from bert_np import BertError
from bert_np.course import check, grade, show_case
from bert_np.course.attempts import Trouble, attempt
from bert_np.course.exercise import all_exercises
from bert_np.course.grading import case_of

EXERCISES = all_exercises()
FUNCTIONS = [i for i, exercise in EXERCISES.items() if exercise.is_function]
WRONG = list(wrong_solutions())
CAUSES = {m.message for exercise in EXERCISES.values() for m in exercise.mistakes}


# ------------------------------------------------------- what is wrong


@pytest.mark.parametrize("exercise_id, name, function", WRONG)
def test_a_wrong_solution_is_refused_and_told_why(exercise_id, name, function):
    result = grade(exercise_id, function)
    assert result.passed is False
    assert (result.message in CAUSES) == (not name.endswith("_"))
    if name.endswith("_"):
        assert f'show_case("{exercise_id}", ' in result.message


def test_every_exercise_has_wrong_solutions():
    assert {exercise_id for exercise_id, _, _ in WRONG} == set(FUNCTIONS)


# ------------------------------------------------------- what is right


def log_softmax(x):
    z = x - x.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def masked(low):
    def probs(scores, attention_mask):
        hidden = np.broadcast_to(attention_mask[:, None, None] == 0, scores.shape)
        scores = scores.copy()
        scores[hidden] = low
        return np.exp(log_softmax(scores))

    return probs


def attention(q, k, v):
    probs = np.exp(log_softmax(np.einsum("id,jd->ij", q, k) * q.shape[1] ** -0.5))
    return np.einsum("ij,jd->id", probs, v), probs


def wordpiece(word, vocab, mark=""):
    if not word:
        return []
    for end in range(len(word), 0, -1):
        if mark + word[:end] in vocab:
            rest = wordpiece(word[end:], vocab, "##")
            return rest if "[UNK]" in rest else [mark + word[:end], *rest]
    return ["[UNK]"]


def encode_pair(first, second, vocab, length):
    tokenizer = bert_np.Tokenizer.from_tokens(sorted(vocab, key=vocab.get))
    halves = [tokenizer.encode(text).input_ids for text in (first, second)]
    ids = np.concatenate([halves[0], halves[1][1:]])  # one [CLS]
    row = np.full(length, vocab["[PAD]"])
    row[: len(ids)] = ids
    places = np.arange(length)
    second_text = (places >= len(halves[0])) & (places < len(ids))
    return row, second_text, places < len(ids)


def self_attention(x, params, attention_mask, A):
    config = bert_np.BertConfig(hidden_size=x.shape[-1], num_attention_heads=A)
    return bert_np.self_attention(x, params, attention_mask, config)[0]


def layer(x, params, attention_mask, config):
    return bert_np.encoder_layer(x, params, attention_mask, config)[0]


def embed(input_ids, segment_ids, params, eps):
    config = bert_np.BertConfig(
        hidden_size=4, num_attention_heads=1, layer_norm_eps=eps
    )
    return bert_np.embed(input_ids, segment_ids, params, config)


def encoder(x, layers, attention_mask, config):
    states = np.zeros((len(layers) + 1, *x.shape))
    states[0] = x
    for i, params in enumerate(layers):
        states[i + 1], _ = bert_np.encoder_layer(
            states[i], params, attention_mask, config
        )
    return states


def mask_tokens(ids, draw, fate, random_ids):
    masked, labels = [], []
    for i, d, f, other in zip(ids, draw, fate, random_ids):
        asked = d < 0.15 and i >= 5
        labels.append(i if asked else -100)
        masked.append(i if not asked or f >= 0.9 else 4 if f < 0.8 else other)
    return masked, labels


def tensor(data, name):
    n = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:][:n])[name]
    count = math.prod(entry["shape"])
    start = 8 + n + entry["data_offsets"][0]
    return (
        np.frombuffer(data, np.float32, count, start).reshape(entry["shape"]).tolist()
    )


def name_of(layer, part, array):
    part = part.replace("attention.", "attention.self.").replace("ffn", "layer")
    for ours, theirs in (
        ("self.output", "output.dense"),
        ("attention_norm", "attention.output.LayerNorm"),
        ("layer_norm", "output.LayerNorm"),
        ("layer.inner", "intermediate.dense"),
        ("layer.outer", "output.dense"),
    ):
        part = part.replace(ours, theirs)
    end = {"W": "weight", "gamma": "weight"}.get(array, "bias")
    return "encoder.layer." + str(layer) + "." + part + "." + end


def norm_backward(d_y, x):
    rows = []
    for d, row in zip(d_y, x):
        n, s = len(row), row.std()
        z = (row - row.mean()) / s
        rows.append((np.eye(n) - 1 / n - np.outer(z, z) / n) @ d / s)
    return rows


def softmax_backward(d_probs, probs):
    return [(np.diag(p) - np.outer(p, p)) @ d for d, p in zip(d_probs, probs)]


def without_head(W_o, head, D):
    return W_o * (np.arange(len(W_o)) // D != head)[:, None]


def linear_backward(d_y, x, W):
    return np.einsum("no,io->ni", d_y, W), np.einsum("ni,no->io", x, d_y), sum(d_y)


def attention_backward(d_context, q, k, v):
    d_q, d_k, d_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for i, query in enumerate(q):
        probs = bert_np.softmax(k @ query / np.sqrt(len(query)))
        jacobian = np.diag(probs) - np.outer(probs, probs)
        d_scores = jacobian @ (v @ d_context[i]) / np.sqrt(len(query))
        d_q[i] = d_scores @ k
        d_k += np.outer(d_scores, query)
        d_v += np.outer(probs, d_context[i])
    return d_q, d_k, d_v


def gelu_backward(d_y, x):
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5 * d_y


def gelu(x):
    return np.vectorize(lambda value: value * phi(value))(x)


def adam(p, g, m, v, step, rate):
    m, v = m + (g - m) / 10, v + (g * g - v) / 1000
    rates = rate * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    return p - rates * m / (np.sqrt(v) + 1e-8 * math.sqrt(1 - 0.999**step)), m, v


def classifier(vectors, labels, W, b):
    logits = np.einsum("nh,hk->nk", vectors, W) + b
    losses = [-log_softmax(z[None])[0, label] for z, label in zip(logits, labels)]
    return logits.tolist(), sum(losses) / len(losses)


def classifier_backward(vectors, labels, W, b):
    d_vectors, d_W, d_b = np.zeros(vectors.shape), np.zeros(W.shape), np.zeros(len(b))
    for i, (vector, label) in enumerate(zip(vectors, labels)):
        d_logits = bert_np.softmax(vector @ W + b) - np.eye(len(b))[label]
        d_vectors[i] = W @ d_logits / len(labels)
        d_W += np.outer(vector, d_logits) / len(labels)
        d_b += d_logits / len(labels)
    return d_vectors, d_W, d_b


def phi(x):
    return math.erfc(-x / math.sqrt(2)) / 2


RIGHT = [
    ("00.shares", lambda c: (c.T / c.sum(1)).T),
    ("01.split", lambda t: [w for w, _ in bert_np.tokenizer.basic_split(t.lower())]),
    ("01.wordpiece", wordpiece), ("01.pair", encode_pair), ("03.attention", attention),
    ("02.one_hot", lambda ids, V: np.eye(V, dtype=int)[ids]),
    ("02.sum", lambda i, s, w, p, g: [w[a] + p[t] + g[s[t]] for t, a in enumerate(i)]),
    ("02.layer_norm", lambda x, gamma, beta, eps:
     (x - x.mean(1)[:, None]) / (x.std(1) ** 2 + eps)[:, None] ** 0.5 * gamma + beta),
    ("02.layer_norm", bert_np.layer_norm),
    ("03.softmax", bert_np.softmax), ("03.softmax", lambda s: np.exp(log_softmax(s))),
    ("04.mask", lambda ids, pad: ids != pad), ("04.probs", masked(-1e30)),
    ("04.mask", bert_np.create_attention_mask),
    ("04.probs", masked(-1e9)), ("04.probs", masked(-10000)),
    ("04.probs", lambda s, m: bert_np.softmax(s + (1 - m[:, None, None]) * -1e300)),
    ("05.split", bert_np.split_heads), ("05.split", lambda x, A:
     np.stack(np.split(x, A, axis=2), axis=1)),
    ("05.merge", lambda x: np.concatenate([x[:, a] for a in range(x.shape[1])], -1)),
    ("05.self_attention", self_attention), ("02.embed", embed),
    ("06.gelu", np.vectorize(lambda v: v * phi(v))),
    ("06.gelu", bert_np.gelu), ("06.layer", layer), ("07.encoder", encoder),
    ("06.feed_forward", lambda x, W, b, U, c: bert_np.gelu(b + x.dot(W)).dot(U) + c),
    ("07.pool", lambda x, W, b: np.array([np.tanh(row[0] @ W + b) for row in x])),
    ("07.count", lambda V, P, S, H, F, L, A:
     float(H * (V + P + S + 3 + H) + L * (4 * H * H + 2 * H * F + 9 * H + F))),
    ("08.mask", mask_tokens),
    ("08.head", lambda x, W, b, g, e, E, bias:
     np.einsum("th,vh->tv", bert_np.layer_norm(bert_np.gelu(x @ W + b), g, e, 1e-12), E)
     + bias),
    ("08.loss", lambda z, y: -np.mean([log_softmax(z)[t, i] for t, i in enumerate(y)
                                       if i != -100])),
    ("09.tensor", tensor), ("09.name", name_of),
    ("10.previous", lambda p: np.trace(p[1:]) / (len(p) - 1)),
    ("10.real_mean", lambda v, m: np.average(v, weights=m)),
    ("10.score", lambda a, d, h: [np.mean([
        sorted((w, k) for k, w in enumerate(m[i]) if k != i)[-1][1] == j
        for i, j in zip(d, h)]) for m in a]),
    ("11.moved", lambda p, m: [r / sum(r) for r in p * [math.hypot(*v) for v in m]]),
    ("11.without_head", without_head), ("12.softmax_backward", softmax_backward),
    ("11.patch_head", lambda a, o, W, b, h: b + sum(
     (o if i == h else a)[i] @ W.reshape(len(a), -1, W.shape[1])[i]
     for i in range(len(a)))),
    ("12.linear_backward", linear_backward),
    ("12.attention_backward", attention_backward),
    ("12.layer_norm_backward", norm_backward), ("12.gelu_backward", gelu_backward),
    ("12.d_logits", lambda z, i: bert_np.softmax(z) - np.eye(len(z))[i]),
    ("12.sgd", lambda p, g, rate: [a - rate * b for a, b in zip(p, g)]),
    ("12.adam", adam),
    ("13.mean_pool", lambda x, m: [np.average(r, axis=0, weights=w)
                                   for r, w in zip(x, m)]),
    ("13.mean_pool", lambda x, m: np.array([r[w == 1].mean(axis=0)
                                            for r, w in zip(x, m)])),
    ("13.classifier", classifier), ("13.classifier_backward", classifier_backward),
    ("14.operations", lambda T, H, F: 8*T*H*H + 4*T*H*F + 4*T*T*H),
    ("14.padding", lambda n: (n.max() - n).sum() / n.max() / n.size),
]  # fmt: skip


@pytest.mark.parametrize("exercise_id, function", RIGHT)
def test_a_right_solution_passes_however_it_is_written(exercise_id, function):
    for _ in range(2):  # other fresh cases each time
        result = grade(exercise_id, function)
        assert result.passed, result.message


def test_every_exercise_has_another_right_solution():
    assert {exercise_id for exercise_id, _ in RIGHT} == set(FUNCTIONS)


# ------------------------------------------------------------ the cases


def kinds(case):
    """The types of arguments, and the numbers of axes of arrays."""
    return [(type(argument), np.ndim(argument)) for argument in case if
            not isinstance(argument, (list, dict))]  # fmt: skip


@pytest.mark.parametrize("exercise_id", FUNCTIONS)
def test_drawn_cases_are_of_the_kind_of_the_stored_and_have_a_result(exercise_id):
    exercise = EXERCISES[exercise_id]
    for number in range(1000, 1015):
        case = case_of(exercise, number)
        assert kinds(case) == kinds(exercise.cases[0])
        result = attempt(exercise.solution, case)
        assert not isinstance(result, Trouble)
        for part in result if isinstance(result, tuple) else [result]:
            if isinstance(part, (float, np.ndarray)):
                assert np.isfinite(part).all()


@pytest.mark.parametrize("exercise_id", FUNCTIONS)
def test_a_case_is_drawn_from_its_number_alone(exercise_id):
    exercise = EXERCISES[exercise_id]
    cases = [case_of(exercise, number) for number in (1234, 1234, *range(2000, 2006))]
    first, same, *others = (repr(attempt(exercise.solution, case)) for case in cases)
    assert first == same and len(set(others)) > 1


def my_softmax(scores):
    return scores / scores.sum(axis=-1, keepdims=True)


def test_a_case_is_shown_with_both_results(capsys):
    show_case("03.softmax", 3)
    out = capsys.readouterr().out
    assert out.startswith("03.softmax, case 3\nscores, shape (2, 4):\n[[ 0.5  1.5 -1.")
    mine, right = out.split("your result, shape (2, 4):")[1].split("right result")
    assert "0.166667" in mine and "0.322717" in right


def test_another_function_is_shown_when_it_is_given(capsys):
    show_case("03.softmax", 3, lambda scores: scores.nothing)
    out = capsys.readouterr().out
    assert "problem: raises AttributeError" in out and "right result" in out
    show_case("03.attention", 1)
    out = capsys.readouterr().out
    assert "no my_attention here; give your function as the third argument" in out
    assert "q, shape (3, 4):" in out and "right result[1], shape (3, 3):" in out


def test_a_fresh_case_that_failed_can_be_seen(capsys):
    stored = {(len(ids), V) for ids, V in EXERCISES["02.one_hot"].cases}

    def nearly_right(ids, V):  # wrong in 43 of 48 sizes that are drawn
        return np.eye(V)[ids] * ((len(ids), V) in stored)

    check("02.one_hot", nearly_right)
    number = int(
        re.search(r'show_case\("02.one_hot", (\d+)', capsys.readouterr().out)[1]
    )
    assert number >= 1000
    show_case("02.one_hot", number, nearly_right)
    mine, right = capsys.readouterr().out.split("right result")
    assert "1" not in mine.split("your result")[1].split(":")[1] and "1" in right


def test_a_teacher_can_hide_right_results(capsys, monkeypatch):
    monkeypatch.setenv("BERT_NP_SOLUTIONS", "hidden")
    show_case("03.softmax", 3)
    out = capsys.readouterr().out
    assert "0.166667" in out and "0.322717" not in out
    assert out.endswith("right result: hidden here; ask your teacher\n")


def test_what_has_no_cases_gives_nothing_away(capsys):
    show_case("03.row", 1)
    out = capsys.readouterr().out
    assert out == "03.row asks for a value: there are no cases to show\n"


@pytest.mark.parametrize("number", [0, 8, 999, -1, True, 1.0, "1", None, [1], 1000.0])
def test_a_case_that_is_not_there_is_refused(number):
    with pytest.raises(BertError, match="number = .*, allowed: 1 to 7, or the number"):
        show_case("03.softmax", number)


@pytest.mark.parametrize("exercise_id", FUNCTIONS)
def test_every_case_can_be_shown(exercise_id, capsys):
    for number in [*range(1, len(EXERCISES[exercise_id].cases) + 1), 1000]:
        show_case(exercise_id, number, EXERCISES[exercise_id].solution)
        out = capsys.readouterr().out
        mine, right = out.split("your result", 1)[1].split("right result", 1)
        assert mine.replace("your", "right").strip() == right.strip()
        assert len(out) < 12_000
