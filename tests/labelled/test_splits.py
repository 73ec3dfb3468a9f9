"""From examples to train and dev, the same for every task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from albert.errors import DataError
from albert.labelled.holdout import content_key
from albert.labelled.request import DataRequest
from albert.labelled.splits import divide, fingerprint
from albert.tasks.classification import TextExample
from albert.tasks.task import Splits

REQUEST = DataRequest(Path("a.csv"), holdout=0.2, seed=3)


def examples(name: str, count: int, *, first: int = 0) -> list[TextExample]:
    return [TextExample(f"text {i}", target=i % 2, place=f"{name}:{i}") for i in range(first, first + count)]


def split(
    train: list[TextExample],
    *,
    request: DataRequest = REQUEST,
    dev: list[TextExample] | None = None,
    test: list[TextExample] | None = None,
    notes: list[str] | None = None,
) -> Splits[TextExample]:
    return divide(
        request,
        train,
        dev={"dev": dev} if dev else {},
        test={"test": test} if test else {},
        key=lambda example: content_key(example.text),
        notes=notes if notes is not None else [],
        stratum=lambda example: example.target,
    )


def test_without_dev_a_share_of_every_class_is_held_out_and_said() -> None:
    notes: list[str] = []
    train = examples("train", 100)
    splits = split(train, notes=notes)
    aside = splits.dev["dev"]
    assert len(aside) == 20
    assert sum(example.target == 1 for example in aside) == 10
    assert sorted([*splits.train, *aside], key=train.index) == train
    assert notes == ["no dev data given: 20 of 100 rows are held out (seed 3)"]
    assert split(train).dev == splits.dev, "the same each time"
    assert split(train, request=replace(REQUEST, seed=4)).dev != splits.dev


def test_given_dev_data_nothing_is_held_out() -> None:
    train, dev = examples("train", 10), examples("dev", 4, first=50)
    splits = split(train, dev=dev)
    assert (splits.train, splits.dev) == (train, {"dev": dev})


def test_examples_of_one_group_stay_on_one_side() -> None:
    splits = divide(
        REQUEST, examples("train", 60), dev={}, test={}, key=lambda example: example.text, notes=[],
        group=lambda example: f"article {int(example.text.split()[1]) // 6}",
    )  # fmt: skip
    sides = [{int(example.text.split()[1]) // 6 for example in side} for side in (splits.train, splits.dev["dev"])]
    assert sides[1]
    assert not sides[0] & sides[1]


def test_copies_between_train_and_the_others_are_warned_of_with_the_first_place() -> None:
    notes: list[str] = []
    train = examples("train", 10)
    dev = [
        TextExample("new", place="dev:1"),
        TextExample("TEXT  4", place="dev:2"),
        TextExample("text 5", place="dev:3"),
    ]
    split(train, dev=dev, test=[TextExample("text 9", place="test:1")], notes=notes)
    assert notes[0].startswith("warning: 2 of 3 rows of dev are in the training data too, the first: dev:2 is train:4")
    assert notes[1].startswith(
        "warning: 1 of 1 rows of test are in the training data too, the first: test:1 is train:9"
    )
    assert len(notes) == 2


def test_limits_keep_a_seeded_choice_and_leave_test_whole() -> None:
    request = replace(REQUEST, limit_train=5, limit_dev=3)
    train, dev, test = examples("train", 30), examples("dev", 10, first=50), examples("test", 9, first=90)
    splits = split(train, request=request, dev=dev, test=test)
    assert len(splits.train) == 5
    assert len(splits.dev["dev"]) == 3
    assert splits.test == {"test": test}
    assert splits.train != train[:5]
    assert split(train, request=request, dev=dev, test=test) == splits


def test_rows_that_can_not_be_divided_are_an_error_of_the_file() -> None:
    with pytest.raises(DataError, match=r"a\.csv: 2 rows with 1 different texts can't be divided"):
        split([TextExample("one", target=0), TextExample("One", target=0)])
    assert split([]).dev == {}


def test_the_fingerprint_is_of_all_that_decides_about_the_examples(tmp_path: Path) -> None:
    file, same = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text("text,label\n")
    same.write_text("text,label\n")
    base = fingerprint([file], REQUEST)
    assert fingerprint([same], replace(REQUEST, data=same)) == base, "of contents, not of names"
    changes = [
        replace(REQUEST, holdout=0.3), replace(REQUEST, seed=4), replace(REQUEST, limit_train=9),
        replace(REQUEST, limit_dev=9), replace(REQUEST, columns={"text": "body"}),
    ]  # fmt: skip
    others = {fingerprint([file], request) for request in changes} | {fingerprint([file, same], REQUEST)}
    file.write_text("text,label\nx,y\n")
    others.add(fingerprint([file], REQUEST))
    assert len(others - {base}) == len(changes) + 2
