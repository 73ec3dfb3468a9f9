"""Tagged sentences from CoNLL files and tables, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.catalog import DataRequest, open_data, read_inputs
from albert.tasks.classification import Regression
from albert.tasks.tagging import Tagging

LABELS = ("O", "B-LOC", "B-PER", "I-PER")
CONLL = """-DOCSTART- -X- O

# a comment about the sentence
Peter NNP B-PER
Smith NNP I-PER
works VBZ O

# NN O
Paris NNP B-LOC
"""


def test_a_conll_file_gives_sentences_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.conll.gz"
    path.write_bytes(gzip.compress(CONLL.encode()))
    dev = tmp_path / "dev.txt"
    dev.write_text("Smith\tB-PER\r\n\r\n\r\nParis\tB-LOC")
    opened = open_data(DataRequest(path, task="tagging", dev=dev))
    assert opened.task == Tagging(LABELS)
    assert [example.words for example in opened.splits.train] == [("Peter", "Smith", "works"), ("#", "Paris")]
    assert opened.splits.train[0].target == (2, 3, 0)
    assert opened.splits.train[0].place == f"{path}:4"
    assert [example.target for example in opened.splits.dev["dev"]] == [(2,), (1,)]
    assert any("scheme IOB2" in note for note in opened.notes)


def test_lists_of_tokens_and_tags_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [{"tokens": ["Peter", "Smith"], "ner_tags": ["B-PER", "I-PER"]}, {"tokens": ["so"], "ner_tags": ["O"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    opened = open_data(DataRequest(path))
    assert opened.task == Tagging(("O", "B-PER", "I-PER"))
    assert opened.columns == {"tokens": "tokens", "tags": "ner_tags"}
    evaluated = open_data(DataRequest(path), task=Tagging(LABELS))
    assert [example.target for example in evaluated.splits.dev["dev"]] == [(2, 3), (0,)]
    assert [example.words for example in read_inputs(Tagging(LABELS), path, {})] == [("Peter", "Smith"), ("so",)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.conll", "Peter B-PER\nSmith\n", "x.conll:2: 'Smith' has one column"),
        ("x.conll", "a NN O\nb B-PER\n", "x.conll:2: 2 columns where the lines before have 3"),
        ("x.conll", "\n\n", "x.conll: no sentences"),
        ("x.conll", "a O\nb O\n", "x.conll: 1 different tags, there must be two at least"),
        ("x.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n{"tokens": ["a"], "tags": ["X"]}', "1: 2 tokens and 1 tag"),
        ("x.jsonl", '{"tokens": ["a", ""], "tags": ["O", "B-X"]}', "x.jsonl:1: column 'tokens' holds"),
    ],
)  # fmt: skip
def test_a_defect_is_named_with_its_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        open_data(DataRequest(tmp_path / name, task="tagging"))
    assert message in str(caught.value)


def test_a_tag_that_the_model_does_not_know_is_named(tmp_path: Path) -> None:
    path = tmp_path / "dev.conll"
    path.write_text("Peter B-PER\n\nAcme B-ORG\n")
    with pytest.raises(DataError, match=r"dev\.conll:3: tag 'B-ORG' is none of the training data's"):
        open_data(DataRequest(path), task=Tagging(LABELS))
    with pytest.raises(UsageError, match="made for regression"):
        open_data(DataRequest(path), task=Regression())


def test_plain_text_files_are_cut_into_words(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("Peter, hello\n\nParis\n")
    assert [example.words for example in read_inputs(Tagging(LABELS), path, {})] == [
        ("Peter", ",", "hello"),
        (),
        ("Paris",),
    ]  # type: ignore[attr-defined]
