"""Evaluation of a tuned model returns plans, decisions and scores, and prints nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from albert.errors import DataError
from albert.evaluate import TaskPlan, TaskScores, evaluate_task
from albert.evaluate.tuned import open_labelled
from albert.inference.inputs import read_examples
from albert.inference.model import load
from albert.labelled.request import DataRequest
from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.text.documents import ReadReport
from albert.tokenizer import Tokenizer

TASK = Classification(("bad", "good"), max_length=32)


@pytest.fixture
def model(tmp_path: Path, tokenizer: Tokenizer) -> str:
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    network = new_model(TASK.configure(config), (TASK.head,), seed=7)
    save_model(network, tmp_path / "model", tokenizer=tokenizer, extra={TASK_FILE: task_json(TASK)})
    return str(tmp_path / "model")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "dev.csv"
    path.write_text("text,label\n" + "".join(f"the ship {i},{'good' if i < 6 else 'bad'}\n" for i in range(8)))
    return path


def test_columns_of_training_are_those_of_evaluation_for_every_task(tmp_path: Path) -> None:
    path = tmp_path / "dev.csv"
    rows = "".join(f"Wer {i}?,Anna {i},Bert {i},{i % 2}\n" for i in range(6))
    path.write_text(f"Frage,X1,X2,richtig\n{rows}")
    columns = {"question": "Frage", "choices": "X1,X2", "label": "richtig"}
    opened = open_labelled(DataRequest(path), Choice(2, max_length=32), columns)
    assert [example.choices for example in opened.splits.dev["dev"]][1] == ("Anna 1", "Bert 1")  # type: ignore[attr-defined]


def test_scores_decisions_and_written_files_are_returned(
    model: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[float] = []
    out = tmp_path / "decisions.jsonl"
    result = evaluate_task(model, DataRequest(table), predictions=out, observe=lambda share, _words: seen.append(share))
    assert isinstance(result, TaskScores)
    assert (result.model, result.task, result.predictions) == (model, "classification", (out,))
    dev = result.sets["dev"]
    right = sum(
        guess.label == TASK.labels[row.target] for guess, row in zip(dev.predictions, dev.examples, strict=True)
    )
    assert dev.scores is not None
    assert dev.baseline is not None
    assert (dev.scores["accuracy"], dev.baseline["accuracy"]) == (right / 8, 0.75)
    assert len(out.read_text().splitlines()) == 8
    assert seen[-1] == 1.0
    assert capsys.readouterr() == ("", "")


def test_a_dry_run_returns_a_plan_and_writes_nothing(model: str, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "decisions.jsonl"
    plan = evaluate_task(model, DataRequest(table, limit_dev=5), predictions=out, dry_run=True)
    assert isinstance(plan, TaskPlan)
    assert plan.rows == {"dev": 5}
    assert plan.seconds >= 0
    assert not out.exists()


COLUMNS = {"text": "title,body", "label": "topic"}


@pytest.fixture
def classifier(word_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    config = AlbertConfig(
        vocab_size=word_tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, labels=("a", "b"),
    )  # fmt: skip
    extra = {TASK_FILE: task_json(Classification(("a", "b"), max_length=32), columns=COLUMNS)}
    save_model(new_model(config, ("classifier",)), tmp_path / "model", tokenizer=word_tokenizer, extra=extra)
    return tmp_path / "model"


def test_a_model_of_title_and_body_reads_both_again(classifier: Path, tmp_path: Path) -> None:
    rows = [{"title": f"the ship {i}", "body": "came to the town", "topic": "ab"[i % 2]} for i in range(8)]
    path = tmp_path / "news.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = evaluate_task(str(classifier), DataRequest(path))
    assert isinstance(scored, TaskScores)
    assert [example.text for example in scored.sets["dev"].examples] == [f"{r['title']}\n{r['body']}" for r in rows]
    predicted = read_examples(load(classifier), path, {}, ReadReport())
    assert [example.text for example in predicted] == [f"{r['title']}\n{r['body']}" for r in rows]  # type: ignore[attr-defined]


def test_data_that_is_not_there_is_named_before_the_model_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing.csv: no such file or folder"):
        evaluate_task("tiny-en", DataRequest(tmp_path / "missing.csv"))
