"""The treebank and the reviews: what is in them, and what is refused."""

from collections import Counter

import pytest

from bert_np import BertError
from bert_np.analysis import read_reviews, read_treebank
from bert_np.analysis.corpora import Review, Sentence

SAT = Sentence(("#", "sat"), ("SYM", "VERB"), (1, -1), ("nsubj", "root"), "n1")
CONLLU = """\
# newdoc id = n
# sent_id = n1
1\t#\t#\tSYM\t_\t_\t2\tnsubj\t_\t_
1.1\t_\t_\t_\t_\t_\t_\t_\t_\t_
2-3\tsat-in\t_\t_\t_\t_\t_\t_\t_\t_
2\tsat\tsit\tVERB\t_\t_\t0\troot\t_\t_
"""


def written(path, text):
    path.write_bytes(text.encode("utf-8"))
    return path


def test_the_treebank_of_the_course():
    sentences = read_treebank()
    assert len(sentences) == 1000 and len({s.source for s in sentences}) == 1000
    counts = Counter(name for s in sentences for name in s.relations)
    assert counts["root"] == 1000 and counts["obj"] == 877 and counts["det"] == 2043
    assert sum(map(len, (s.words for s in sentences))) == counts.total() == 21180
    first = sentences[1]
    assert first.words[:6] == ("For", "those", "who", "follow", "social", "media")
    assert first.tags[3] == "VERB" and first.heads[:4] == (1, 16, 3, 1)
    assert all(
        (s.heads[i] == -1) == (r == "root")
        for s in sentences
        for i, r in enumerate(s.relations)
    )


def test_the_reviews_of_the_course():
    reviews = read_reviews()
    counts = Counter((review.source, review.label) for review in reviews)
    assert counts == {(s, x): 500 for s in ("amazon", "imdb", "yelp") for x in (0, 1)}
    assert reviews[1] == Review("Good case, Excellent value.", 1, "amazon")
    characters = set("".join(review.text for review in reviews))
    assert characters >= set("é…–—") and all(map(str.isprintable, characters))


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_both_formats_give_the_same_sentences(tmp_path, end, line_end):
    short = "# sent_id = n1\n#\tSYM\t2\tnsubj\nsat\tVERB\t0\troot\n"
    for text in (short, CONLLU):
        twice = f"{text}\n\n{text.replace('sent_id = n1', 'x')}".rstrip() + end
        path = written(tmp_path / "a.tsv", twice.replace("\n", line_end))
        assert read_treebank(path) == [SAT, SAT._replace(source="")]


FIRST = "cat\tNOUN\t2\tnsubj\n"


@pytest.mark.parametrize(
    "read, text, message",
    [
        (read_treebank, "", "no sentence"),
        (read_treebank, "# only this\n", "no sentence"),
        (
            read_treebank,
            "The cat sat.",
            r"line 1, 'The cat sat.', has 1 columns.* 4 or",
        ),
        (read_treebank, FIRST + "sat\tVERB\t\troot", r"line 2.*column 3 is empty"),
        (
            read_treebank,
            FIRST + "sat\tVERB\t3\troot",
            r"line 2: head '3', allowed 0..2",
        ),
        (read_treebank, FIRST + "sat\tVERB\t2\troot", r"line 2: head '2'.*itself, 2"),
        (read_treebank, FIRST + "sat\tVERB\t-1\troot", r"line 2: head '-1'"),
        (read_treebank, FIRST + "sat\tVERB\t²\troot", r"line 2: head '²'"),
        (read_treebank, CONLLU.replace("\n2\t", "\n3\t"), "line 6: number '3'.*wed 2"),
        (read_treebank, "1-2" + "\ta" * 9, "line 1.*no word"),
        (read_reviews, "", "no review"),
        (read_reviews, "yelp\t1\tGood.\n\n", "line 2, '', has 1 columns, allowed 3"),
        (read_reviews, "yelp\tgood\tGood.", "line 1: label 'good', allowed 0 or 1"),
        (read_reviews, "yelp\t1\t \n", "line 1.*column 3 is empty"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, read, text, message):
    path = written(tmp_path / "own.tsv", text)
    with pytest.raises(BertError, match=f"own.tsv.*{message}"):
        read(path)


@pytest.mark.parametrize("read", [read_treebank, read_reviews])
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, read):
    with pytest.raises(BertError, match="nothing.tsv: cannot be read: No such file"):
        read(tmp_path / "nothing.tsv")
    (tmp_path / "odd.tsv").write_bytes(b"a\n\xff")
    with pytest.raises(BertError, match="odd.tsv, line 2: byte 2 .* is not UTF-8"):
        read(tmp_path / "odd.tsv")
    with pytest.raises(BertError, match="path = 3, allowed: a str or a Path"):
        read(3)


def test_an_installed_package_looks_in_the_folder_data(tmp_path, monkeypatch):
    monkeypatch.setattr("bert_np.analysis.corpora.__file__", str(tmp_path / "a/b/c.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertError, match="path = None.*notebooks/data/reviews.tsv"):
        read_reviews()
    (tmp_path / "data").mkdir()
    written(tmp_path / "data" / "reviews.tsv", "yelp\t1\tGood.\n")
    assert read_reviews() == [Review("Good.", 1, "yelp")]
