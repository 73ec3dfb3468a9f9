"""Data for similarity: pairs, triples, scores, NLI, texts alone, mixed; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.catalog import open_data, read_inputs
from albert.labelled.request import DataRequest, Opened
from albert.tasks.similarity import PairExample, Similarity


def opened(path: Path, text: str, **request: Any) -> Opened:
    path.write_text(text, encoding="utf-8")
    return open_data(DataRequest(path, task="similarity", **request))


def contents(examples: Any) -> set[tuple[Any, ...]]:
    return {(one.text, one.pair, one.negative, one.target) for one in examples}


def everything(data: Opened) -> set[tuple[Any, ...]]:
    return contents([*data.splits.train, *(one for some in data.splits.dev.values() for one in some)])


def table(rows: int, header: str, make: str) -> str:
    return "\n".join([header, *(make.replace("N", str(number)) for number in range(rows))])


def test_pairs_and_triples_are_known_by_their_columns(tmp_path: Path) -> None:
    data = opened(tmp_path / "pairs.csv", table(20, "anchor,positive,negative", "query N,answer N,wrong N"))
    assert ("query 3", "answer 3", "wrong 3", None) in everything(data)
    assert data.task == Similarity(best="mrr")
    assert len(data.splits.dev["dev"]) == 2
    assert data.columns == {"text": "anchor", "pair": "positive"}
    assert any("pairs with a negative" in note for note in data.notes)


def test_scores_of_any_scale_become_0_to_1(tmp_path: Path) -> None:
    text = table(20, "sentence1\tsentence2\tscore", "one N\ttwo N\t2.5") + "\na b\tc d\t5.0\n"
    data = opened(tmp_path / "scores.tsv", text)
    assert data.task.best == "spearman"
    assert {one.target for one in (*data.splits.train, *data.splits.dev["dev"])} == {0.5, 1.0}
    assert "scores from 0 to 5 are the cosines 0 to 1" in data.notes


def test_of_nli_entailments_belong_to_the_premise_and_contradictions_are_negatives(tmp_path: Path) -> None:
    rows = [
        ("p1", "follows", "entailment"), ("p1", "never", "contradiction"), ("p1", "perhaps", "neutral"),
        ("p2", "also follows", "entailment"), ("p3", "no way", "contradiction"), ("p4", "who knows", "-"),
    ]  # fmt: skip
    lines = [json.dumps(dict(zip(("premise", "hypothesis", "label"), row, strict=True))) for row in rows]
    data = opened(tmp_path / "nli.jsonl", "\n".join(lines))
    assert everything(data) == {("p1", "follows", "never", None), ("p2", "also follows", None, None)}


def test_nli_with_numbers_for_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="write entailment, neutral and contradiction"):
        opened(tmp_path / "nli.csv", "premise,hypothesis,label\na b,c d,0\na b,e f,2\n")


def test_texts_alone_are_read_twice_and_scored_by_their_halves(tmp_path: Path) -> None:
    text = "\n".join(f"the first half {number} and the second" for number in range(20))
    data = opened(tmp_path / "texts.txt", text)
    assert data.task.alone
    assert data.columns == {}
    assert all(one.pair is None for one in data.splits.train)
    (one, *_) = data.splits.dev["dev"]
    assert f"{one.text} {one.pair}" in text
    assert any("second half" in note for note in data.notes)


def test_of_a_folder_of_texts_a_part_is_held_out(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text(f"the first half {number} and the second")
    splits = open_data(DataRequest(tmp_path, task="similarity", holdout=0.2)).splits
    assert (len(splits.train), len(splits.dev["dev"])) == (8, 2)
    assert not {one.text for one in splits.train} & {f"{one.text} {one.pair}" for one in splits.dev["dev"]}


def test_a_folder_of_glue_has_its_own_dev_and_its_training_file_alone_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "RTE"
    folder.mkdir()
    for part, count in (("train", 10), ("dev", 3)):
        rows = table(count, "index\tsentence1\tsentence2\tlabel", f"N\t{part} N\tso N\tentailment")
        (folder / f"{part}.tsv").write_text(rows + "\n")
    whole = open_data(DataRequest(folder, task="similarity")).splits
    assert (len(whole.train), len(whole.dev["dev"])) == (10, 3)
    alone = open_data(DataRequest(folder / "train.tsv", task="similarity")).splits
    assert (len(alone.train), len(alone.dev["dev"])) == (9, 1)


def test_a_file_may_mix_all_forms(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "alone by itself"}, {"text": "a", "pair": "b"}, {"text": "c", "pair": "d", "negative": "e"},
        {"text": "f", "pair": "g", "score": 0.25}, {"text": "h", "pair": "i", "score": None},
    ]  # fmt: skip
    dev = tmp_path / "dev.csv"
    dev.write_text("text,pair,score\nx,y,0.5\nx,z,0.1\n")
    data = opened(tmp_path / "mixed.jsonl", "\n".join(map(json.dumps, rows)), dev=dev, temperature=0.2)
    assert contents(data.splits.train) == {
        ("alone by itself", None, None, None), ("a", "b", None, None), ("c", "d", "e", None),
        ("f", "g", None, 0.25), ("h", "i", None, None),
    }  # fmt: skip
    assert (data.task.best, data.task.temperature, data.task.alone) == ("spearman", 0.2, True)


def test_what_can_not_be_learnt_from_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.csv:3: column 'label' holds 'maybe', must be a number, or entailment"):
        opened(tmp_path / "x.csv", "text,pair,label\na,b,1\nc,d,maybe\n")
    with pytest.raises(DataError, match="the score is 3 in all rows"):
        opened(tmp_path / "x.csv", "text,pair,score\na,b,3\nc,d,3\n")
    with pytest.raises(DataError, match=r"x\.csv:3: column 'text' is empty"):
        opened(tmp_path / "x.csv", "text,pair\na,b\n,d\n")
    with pytest.raises(UsageError, match="--columns question=text: similarity has no such role"):
        opened(tmp_path / "x.csv", "text,pair\na,b\n", columns={"question": "text"})
    (tmp_path / "y.csv").write_text("text,label\na,b\nc,d\ne,b\n")
    with pytest.raises(UsageError, match=r"data\.temperature: only similarity has one"):
        open_data(DataRequest(tmp_path / "y.csv", task="classification", holdout=0.3, temperature=0.1))


def test_pairs_to_compare_are_read_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2,score\nx,y,5\n")
    assert list(read_inputs(Similarity(), path, {})) == [PairExample("x", "y", place=f"{path}:2")]
    path.write_text("text\nx\n")
    with pytest.raises(DataError, match="similarity is that of two texts"):
        list(read_inputs(Similarity(), path, {}))


def test_sts_b_and_mnli_open_as_they_are(real_data: Path) -> None:
    folder, nli = real_data / "glue" / "STS-B", real_data / "nli" / "mnli.subset-train.jsonl"
    data = open_data(DataRequest(folder, task="similarity"))
    assert (len(data.splits.train), len(data.splits.dev["dev"])) == (5749, 1500)
    (first, *_) = data.splits.dev["dev"]
    assert (first.text, first.target) == ("A man with a hard hat is dancing.", 1.0)
    assert open_data(DataRequest(folder), task=Similarity()).splits.dev == data.splits.dev  # to evaluate a model
    mixed = open_data(DataRequest(nli, task="similarity", dev=folder))
    assert mixed.splits.dev == data.splits.dev
    assert len(mixed.splits.train) > 2500
    assert all(one.target is None for one in mixed.splits.train)
