"""Relations found by heads: by scalar loops, by hand, and on MiniLM."""

from collections import Counter

import numpy as np
import oracle
import pytest
from analysis.treebanks import MODEL, SENTENCES, TOKENIZER, parsed
from oracle import CONFIG

from bert_np import BertError, init_params
from bert_np.analysis import (
    format_relations,
    read_treebank,
    score_relations,
    word_attention,
)
from bert_np.analysis.__main__ import main
from bert_np.analysis.syntax import find_in_maps

L, A = CONFIG.num_hidden_layers, CONFIG.num_attention_heads


def maps_by_loops(words):
    """The attention between words, [layer][head][from][to], by the oracle."""
    ids, owners = [TOKENIZER.vocab["[CLS]"]], [None]
    for place, word in enumerate(words):
        for piece in TOKENIZER.tokenize(word):
            ids.append(TOKENIZER.vocab[piece])
            owners.append(place)
    ids.append(TOKENIZER.vocab["[SEP]"])
    owners.append(None)
    T, W = len(ids), len(words)
    stages = oracle.forward([ids], [[0] * T], [[True] * T], MODEL[0], CONFIG)
    maps = np.zeros((L, A, W, W))
    for layer, head, i, j in np.ndindex(L, A, T, T):
        if owners[i] is not None and owners[j] is not None:
            p = stages[f"layers.{layer}.attention.probs"][0][head][i][j]
            maps[layer, head, owners[i], owners[j]] += p / owners.count(owners[i])
    return maps


def test_attention_between_words_equals_the_loops():
    words = SENTENCES[1].words
    assert len(TOKENIZER.tokenize(" ".join(words))) == len(words) + 2
    maps = word_attention(words, *MODEL)
    assert maps.shape == (L, A, 7, 7)
    np.testing.assert_allclose(maps, maps_by_loops(words), rtol=1e-11)


def test_a_word_without_a_piece_is_refused_and_specials_are_plain_text():
    with pytest.raises(BertError, match=r"words\[1\] = '\\u200b' has no piece"):
        word_attention(["the", "\u200b", "cat"], *MODEL)
    typed = word_attention(["the", "[SEP]", "cat"], *MODEL)  # three unknown pieces
    assert typed.shape == (L, A, 3, 3)
    assert np.array_equal(typed, word_attention(["the", "(SEP)", "cat"], *MODEL))


def strongest(row, own):
    """The other word with the largest weight, by a loop."""
    best = None
    for place, weight in enumerate(row):
        if place != own and (best is None or weight > row[best]):
            best = place
    return best


def scores_by_loops(sentences, merge):
    """{relation: [to head, to dependent, offsets, half]} of every pair."""
    pairs = {}
    for number, sentence in enumerate(sentences):
        maps = maps_by_loops(sentence.words)
        for i, (head, name) in enumerate(zip(sentence.heads, sentence.relations)):
            if name in ("root", "punct"):
                continue
            name = name.split(":")[0] if merge else name
            found = np.zeros((2, L, A))
            for layer, a in np.ndindex(L, A):
                found[0, layer, a] = strongest(maps[layer, a, i], i) == head
                found[1, layer, a] = strongest(maps[layer, a, head], head) == i
            pairs.setdefault(name, []).append((number % 2, found, head - i))
    return pairs


@pytest.mark.parametrize("merge", [True, False])
def test_the_scores_of_three_sentences_equal_the_loops(merge):
    expected = scores_by_loops(SENTENCES, merge)
    scores = score_relations(SENTENCES, *MODEL, merge_subtypes=merge, least=1)
    both = ["det", "nsubj", "amod", "obj"]  # in sentence 1 and in 0 or 2
    assert set(scores.relations) == set(both) and scores.relations[0] == "det"
    for row, name in enumerate(scores.relations):
        chosen, reported = ([p for p in expected[name] if p[0] == h] for h in (0, 1))
        assert scores.counts[row] == len(reported)
        means = [np.mean([p[1] for p in part], axis=0) for part in (chosen, reported)]
        np.testing.assert_allclose(scores.accuracy[:, row], means[1])
        for way in (0, 1):
            layer, head = scores.heads[way, row]
            assert means[0][way, layer, head] == means[0][way].max()
            assert scores.best[way, row] == means[1][way, layer, head]
        counts = Counter(p[2] for p in chosen)
        assert counts[scores.offsets[row]] == max(counts.values())
        hits = [p[2] == scores.offsets[row] for p in reported]
        assert scores.baseline[row] == np.mean(hits)
    assert scores.control is None and scores.best_interval is None


def test_the_word_itself_is_never_the_strongest():
    maps = np.array([[[[0.9, 0.06, 0.04], [0.2, 0.7, 0.1], [0.3, 0.1, 0.5]]]])
    found = find_in_maps(maps, np.array([0, 2]), np.array([1, 1]))
    assert found[:, :, 0, 0].tolist() == [[True, False], [True, False]]


def test_resampling_and_the_control_come_from_the_generator():
    sentences = SENTENCES * 6
    rng = np.random.default_rng(3)
    first = score_relations(sentences, *MODEL, rng=rng, least=2)
    plain = score_relations(sentences, *MODEL, least=2)
    for name, values in zip(plain._fields, plain):
        if values is not None:
            np.testing.assert_array_equal(values, getattr(first, name))
    low, high = first.best_interval[..., 0], first.best_interval[..., 1]
    assert (low <= first.best).all() and (first.best <= high).all()
    low, high = first.baseline_interval.T
    assert (low <= first.baseline).all() and (first.baseline <= high).all()
    gain = first.best - first.baseline
    assert (first.gain_interval[..., 0] <= gain).all()
    assert (gain <= first.gain_interval[..., 1]).all()
    rng = np.random.default_rng(3)
    n = len(sentences) // 2
    rng.multinomial(n, np.full(n, 1 / n), 1000)
    other = init_params(CONFIG, rng)
    control = score_relations(sentences, other, *MODEL[1:], least=2).best
    np.testing.assert_array_equal(first.control, control)


def test_an_interval_is_as_wide_as_the_number_of_sentences_asks():
    """An offset that is right in half of n sentences: 2 · 1.96 · 0.5 / √n."""
    right, wrong = parsed("a/X/1/x b/X/-1/root"), parsed("a/X/-1/root b/X/0/x")
    halves = [right, right, right, wrong] * 50  # reported: right, wrong, ...
    scores = score_relations(halves, *MODEL, rng=np.random.default_rng(0))
    assert scores.offsets.tolist() == [1] and scores.baseline.tolist() == [0.5]
    width = np.diff(scores.baseline_interval)[0, 0]
    assert width == pytest.approx(2 * 1.96 * 0.5 / 100**0.5, rel=0.15)


def test_the_table_holds_a_row_for_each_relation():
    scores = score_relations(SENTENCES * 6, *MODEL, least=2)
    rows = format_relations(scores).splitlines()
    assert len(rows) == 2 + len(scores.relations)
    layer, head = scores.heads[0, 0]
    assert rows[2].startswith(f"| det | {scores.counts[0]} | ({layer}, {head}) | ")
    assert f"| {scores.offsets[0]:+d} | {scores.baseline[0]:.2f} |" in rows[2]


BAD = SENTENCES[0]._replace


@pytest.mark.parametrize(
    "sentences, options, message",
    [
        ("the cat", {}, "sentences is 'the cat', allowed: a list of Sentence"),
        (SENTENCES[0], {}, "allowed: a list of Sentence"),
        (SENTENCES[:1], {}, "sentences has 1 entries, allowed: 2 or more"),
        ([("the", "cat")] * 2, {}, r"sentences\[0\] is tuple, allowed: Sentence"),
        ([BAD(words=("the",))] * 2, {}, r"different lengths: .*'words': 1, 'tags': 7"),
        ([BAD(words=("the", 3))] * 2, {}, r"sentences\[0\].words\[1\] = 3"),
        ([BAD(heads=(0,) * 7)] * 2, {}, r"heads\[0\] = 0, allowed: -1..6, but not 0"),
        ([BAD(heads=(7,) * 7)] * 2, {}, r"heads\[0\] = 7"),
        (
            [BAD(words=("cat",) * 6 + ("\ud800",))] * 4,
            {"least": 1},
            r"sentences\[0\].words\[6\]\[0\] is U\+D800",
        ),
        (SENTENCES, {}, "no relation has 25 pairs in each half"),
        (SENTENCES, {"least": 0}, "least = 0, allowed 1 or more"),
        (SENTENCES, {"least": 1, "relations": ["iobj"]}, "'iobj' .* allowed: det"),
        (SENTENCES, {"least": 1, "relations": "obj"}, "relations = 'obj', allowed"),
        (SENTENCES, {"rng": 0}, "rng is int, allowed: numpy.random.Generator"),
        (SENTENCES, {"merge_subtypes": 1}, "merge_subtypes = 1"),
        (SENTENCES, {"least": 1, "report": "x"}, "report = 'x', allowed: a function"),
        (SENTENCES, {"least": 1, "batch_size": 0}, "batch_size = 0"),
        ([parsed("cat/X/-1/root " * 16)] * 2, {"least": 1}, "no relation has 1 pairs"),
        (
            [parsed("a/X/1/x a/X/-1/root " + "a/X/1/x " * 14)] * 2,
            {"least": 1},
            r"sentences\[0\].words has 18 pieces .* at most 17",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused(sentences, options, message):
    with pytest.raises(BertError, match=message):
        score_relations(sentences, *MODEL, **options)


@pytest.mark.slow
def test_heads_of_minilm_find_relations(minilm):
    lines = []
    scores = score_relations(read_treebank(), *minilm, report=lines.append)
    assert lines[-1] == "sentences 1,000/1,000" and len(lines) == 10
    found = {
        name: (*scores.heads[0, row], scores.best[0, row], scores.baseline[row])
        for row, name in enumerate(scores.relations)
    }
    expected = {
        "obj": (2, 0, 0.79, 0.43),
        "case": (2, 8, 0.68, 0.36),
        "det": (2, 8, 0.81, 0.59),
        "xcomp": (1, 6, 0.67, 0.44),
        "amod": (2, 8, 0.84, 0.79),
        "fixed": (1, 11, 0.97, 0.86),
    }
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, abs=0.006), name


def test_the_command_prints_the_table(tmp_path, capsys):
    rows = "the\tDET\t2\tdet\ncat\tNOUN\t3\tnsubj\nsat\tVERB\t0\troot\n\n"
    (tmp_path / "own.tsv").write_text(rows * 50, "utf-8")
    own = ["--treebank", str(tmp_path / "own.tsv")]
    assert main(["relations", "toy", *own]) == 0
    printed = capsys.readouterr()
    assert (
        "| det | 25 | (" in printed.out and "| +1 | 1.00 [1.00, 1.00] |" in printed.out
    )
    assert printed.err.splitlines()[-1] == "sentences 50/50"
    assert main(["relations", "toy", "--treebank", str(tmp_path / "no.tsv")]) == 1
    assert capsys.readouterr().err.startswith("error: ")
