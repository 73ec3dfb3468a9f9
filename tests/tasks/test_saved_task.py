"""task.json, and folders without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from albert.errors import ModelError
from albert.model.config import AlbertConfig
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification, MultiLabel, Regression
from albert.tasks.saved_task import TASK_FILE, read_task, task_json
from albert.tasks.span import SpanTask
from albert.tasks.tagging import Tagging
from albert.tasks.task import AnyTask

CONFIG = AlbertConfig(labels=("no", "yes"), max_position_embeddings=256)
TASKS: list[AnyTask] = [
    Classification(("no", "yes"), max_length=64, best="matthews"),
    MultiLabel(("no", "yes"), max_length=64, threshold=0.3),
    Regression(max_length=100),
    Choice(3, max_length=200, blank="_", first_label=1),
    Tagging(("no", "yes"), max_length=50),
    Tagging(("no", "yes"), max_length=50, capitals=True),
    SpanTask(head="conditional_span", unanswerable=True, null_threshold=-1.5, max_length=192, stride=64),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_task_comes_back_as_it_was(tmp_path: Path, task: AnyTask) -> None:
    (tmp_path / TASK_FILE).write_text(json.dumps(task_json(task, name="mine", columns={"text": "body"})))
    remembered = read_task(tmp_path, CONFIG, [task.head])
    assert remembered is not None
    assert remembered.task == task
    assert (remembered.columns, remembered.name) == ({"text": "body"}, "mine")


@pytest.mark.parametrize(
    ("heads", "problem", "labels", "task"),
    [
        (["classifier"], None, ("a", "b"), Classification(("a", "b"), max_length=256)),
        (["classifier"], "single_label_classification", ("a",), Classification(("a",), max_length=256)),
        (["classifier"], "multi_label_classification", ("a", "b"), MultiLabel(("a", "b"), max_length=256)),
        (["classifier"], "regression", ("a",), Regression(max_length=256)),
        (["classifier"], None, ("a",), Regression(max_length=256)),
        (["choice"], None, ("a",), Choice(max_length=256)),
        (["tags"], None, ("O", "B-X"), Tagging(("O", "B-X"), max_length=256)),
        (["span"], None, ("a",), SpanTask(max_length=256)),
        (["conditional_span"], None, ("a",), SpanTask(head="conditional_span", unanswerable=True, max_length=256)),
    ],
)
def test_a_folder_without_it_has_the_task_of_its_head(
    tmp_path: Path, heads: list[str], problem: Any, labels: tuple[str, ...], task: AnyTask
) -> None:
    config = AlbertConfig(labels=labels, problem_type=problem, max_position_embeddings=256)
    remembered = read_task(tmp_path, config, heads)
    assert remembered is not None
    assert remembered.task == task


def test_a_pre_trained_folder_has_no_task(tmp_path: Path) -> None:
    assert read_task(tmp_path, CONFIG, ["mlm", "order"]) is None
    assert read_task(tmp_path, CONFIG, []) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "clasification"}, "did you mean 'classification'"),
        ({"kind": None}, "kind=None is no task"),
        ({"kind": "tagging", "best": None}, "'best' is no setting of a tagging task"),
        ({"max_length": "64"}, "max_length='64'"),
        ({"max_length": 4096}, "max_length=4096 must be from 16 to the model's 256 positions"),
        ({"max_length": -1}, "max_length=-1"),
        ({"threshold": 0.5}, "'threshold' is no setting of a classification task"),
        ({"labels": ["x"]}, "'labels' is no setting"),
        ({"columns": ["text"]}, "columns=.* must map roles"),
        ({"name": 3}, "name=3 must be the name of a task"),
        ({"kind": "choice", "best": "accuracy"}, "a choice task needs the head 'choice', the model has: classifier"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    values = task_json(TASKS[0]) | changes
    (tmp_path / TASK_FILE).write_text(json.dumps(values))
    with pytest.raises(ModelError, match=message):
        read_task(tmp_path, CONFIG, ["classifier"])


def test_a_stride_that_never_ends_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / TASK_FILE).write_text(json.dumps(task_json(SpanTask(max_length=64)) | {"stride": 0}))
    with pytest.raises(ModelError, match=rf"{TASK_FILE}: stride=0 must be 1 or more"):
        read_task(tmp_path, CONFIG, ["span"])
