"""`albert predict` and `albert evaluate` on labelled data, as a user runs them."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import albert
from albert.batch import pack
from albert.cli import app
from albert.errors import DataError, Interrupted, UsageError
from albert.inference import partial
from albert.inference.torch_engine import TorchEngine
from albert.model import AlbertConfig, new_model
from albert.model.folder import save_model
from albert.tasks.answer_scores import score_answer
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification, softmax
from albert.tasks.saved_task import TASK_FILE, task_json
from albert.tasks.span import SpanTask
from albert.tasks.tagging import Tagging
from albert.tasks.task import AnyTask
from albert.tokenizer import Tokenizer

run = CliRunner()


def make(folder: Path, tokenizer: Tokenizer, task: AnyTask | None, *heads: str, columns: Any = None) -> str:
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    config = task.configure(config) if task else config
    extra = {TASK_FILE: task_json(task, columns=columns)} if task else None
    save_model(new_model(config, (task.head,) if task else heads, seed=7), folder, tokenizer=tokenizer, extra=extra)
    return str(folder)


@pytest.fixture
def classifier(tmp_path: Path, tokenizer: Tokenizer) -> str:
    task = Classification(("bad", "good"), max_length=64)
    return make(tmp_path / "classifier", tokenizer, task, columns={"text": "review", "label": "stars"})


def ok(words: list[str], **more: Any) -> str:
    result = run.invoke(app, words, catch_exceptions=False, **more)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_one_text_is_shown_to_people_and_as_json(classifier: str) -> None:
    shown = ok(["predict", classifier, "a wonderful surprise"])
    assert "good" in shown
    assert "%" in shown
    record = json.loads(ok(["predict", classifier, "a wonderful surprise", "--json"]))
    assert record["label"] in ("bad", "good")
    assert record["probabilities"][record["label"]] == record["probability"]
    assert json.loads(ok(["predict", classifier, "", "--json"]))["text"] == ""


@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.jsonl", "in.txt"])
@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.tsv", "out.json"])
def test_a_file_gives_a_file_in_the_same_order(classifier: str, tmp_path: Path, name: str, out: str) -> None:
    texts = [f"the old harbour number {number}" for number in range(30)]
    path, target = tmp_path / name, tmp_path / out
    if name.endswith("jsonl"):
        path.write_text("\n".join(json.dumps({"review": text, "other": "x y z w v"}) for text in texts))
    elif name.endswith("txt"):
        path.write_text("\n".join(texts))
    else:
        separator = "," if name.endswith("csv") else "\t"
        path.write_text("\n".join(["id" + separator + "review", *(f"{i}{separator}{t}" for i, t in enumerate(texts))]))
    assert json.loads(ok(["predict", classifier, str(path), "--out", str(target), "--json"])) == {
        "inputs": 30,
        "out": str(target),
    }
    expected = [result.label for result in albert.load(classifier).classify(texts)]
    if out.endswith("jsonl"):
        rows = [json.loads(line) for line in target.read_text().splitlines()]
    elif out.endswith("json"):
        rows = json.loads(target.read_text())
    else:
        rows = list(csv.DictReader(target.open(), delimiter="," if out.endswith("csv") else "\t"))
    assert [row["text" if name.endswith("txt") else "review"] for row in rows] == texts
    assert [row["label"] for row in rows] == expected


def test_files_without_out_and_standard_input_are_printed(classifier: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n\ntwo\n")
    lines = ok(["predict", classifier, str(tmp_path / "in.txt")]).splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["one", "", "two"], "a result a line"
    whole = json.loads(ok(["predict", classifier, "-", "--json"], input="one\ntwo\nthree\n"))
    assert [record["text"] for record in whole] == ["one", "two", "three"]
    rows = '{"text": "one", "id": 3}\n{"text": "two", "id": 4}\n'
    for mark in ("", "\ufeff"):
        lines = ok(["predict", classifier, "-"], input=mark + rows).splitlines()
        assert [json.loads(line)["text"] for line in lines] == ["one", "two"]


def test_what_was_mended_and_where_standard_input_is_wrong_is_told(classifier: str) -> None:
    result = run.invoke(app, ["predict", classifier, "-"], input=b"caf\xe9 noir\n")
    assert result.exit_code == 0
    assert "note: bytes that are not UTF-8, each replaced by U+FFFD: 1, the first at standard input:1" in result.stderr
    result = run.invoke(app, ["predict", classifier, "-"], input='{"review": "one"}\n{"review": 5}\n')
    assert str(result.exception).startswith("standard input:2: column 'review' holds 5")


def test_the_columns_of_training_are_read_from_a_json_list_too(classifier: str, tmp_path: Path) -> None:
    rows = [{"text": "another text", "review": f"the film {number}"} for number in range(3)]
    (tmp_path / "in.json").write_text(json.dumps(rows))
    words = ["predict", classifier, str(tmp_path / "in.json"), "--out", str(tmp_path / "out.jsonl")]
    assert "has no 'review'" not in run.invoke(app, words, catch_exceptions=False).stderr
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ok(["predict", classifier, str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "lines.jsonl")])
    assert (tmp_path / "out.jsonl").read_text() == (tmp_path / "lines.jsonl").read_text()


def test_other_columns_than_those_of_training_are_said(classifier: str, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("id,story\n1,the old harbour\n2,a ship came in\n")
    words = ["predict", classifier, str(tmp_path / "other.csv"), "--out", str(tmp_path / "out.csv")]
    note = "note: text = 'story': other.csv has no 'review', which the model was trained on"
    assert note in run.invoke(app, words, catch_exceptions=False).stderr
    told = run.invoke(app, [*words, "--columns", "text=story"], catch_exceptions=False)
    assert "note: text" not in told.stderr


def test_a_model_of_pairs_is_given_pairs_and_one_of_single_texts_is_not(
    classifier: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    columns = {"text": "sentence1", "pair": "sentence2", "label": "same"}
    pairs = make(tmp_path / "pairs", tokenizer, Classification(("no", "yes"), max_length=64), columns=columns)
    record = json.loads(ok(["predict", pairs, "one", "--pair", "two", "--json"]))
    assert (record["text"], record["pair"]) == ("one", "two")
    (tmp_path / "other.csv").write_text("premise,hypothesis\none,two\n")
    assert json.loads(ok(["predict", pairs, str(tmp_path / "other.csv")]))["hypothesis"] == "two", (
        "by their usual names"
    )
    (tmp_path / "t.csv").write_text("sentence1,sentnce2,id\nhello there,how are you,1\n")
    (tmp_path / "e.csv").write_text("sentence1,same\nhello,yes\nfoo,no\n")
    for words, error in (
        (["predict", pairs, "one"], UsageError),
        (["predict", pairs, "-"], DataError),
        (["predict", pairs, str(tmp_path / "t.csv")], DataError),
        (["evaluate", pairs, "--data", str(tmp_path / "e.csv")], DataError),
    ):
        result = run.invoke(app, words, input="a line\n")
        assert isinstance(result.exception, error), words
        assert "was trained on pairs of texts (the second was 'sentence2'): give both" in str(result.exception)
    with pytest.raises(UsageError, match="give both"):
        albert.load(pairs).classify("one")
    for words, error in (
        (["predict", classifier, "one", "--pair", "two"], UsageError),
        (["predict", classifier, str(tmp_path / "other.csv")], DataError),
    ):
        result = run.invoke(app, words)
        assert isinstance(result.exception, error), words
        assert "was trained on one text at a time, and this is a pair: leave the second text out" in str(
            result.exception
        )


def test_an_output_never_replaces_its_input(classifier: str, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("review,stars\na,good\nb,bad\n")
    for words in (
        ["predict", classifier, str(path), "--out"],
        ["evaluate", classifier, "--data", str(path), "--predictions"],
    ):
        result = run.invoke(app, [*words, str(tmp_path / "." / "own.csv")])
        assert isinstance(result.exception, UsageError)
        assert "is the input itself" in str(result.exception)
    assert path.read_text() == "review,stars\na,good\nb,bad\n"


def test_written_answers_are_those_that_were_scored(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """A model that has no null threshold yet gets the best one for the data."""
    model = make(tmp_path / "span", tokenizer, SpanTask(max_length=64))
    context = "Maria wrote a long letter to her sister."
    asked = [("Who wrote?", "Maria"), ("Who read?", None), ("To whom?", "her sister"), ("When?", None), ("Why?", None)]
    rows = [
        {"context": context, "question": question, "id": f"q{number}",
         "answers": {"text": [answer] if answer else [], "answer_start": [context.index(answer)] if answer else []}}
        for number, (question, answer) in enumerate(asked)
    ]  # fmt: skip
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ["evaluate", model, "--data", str(tmp_path / "q.jsonl"), "--predictions", str(tmp_path / "out"), "--json"]
    scores = json.loads(ok(words))["sets"]["dev"]["scores"]
    written = json.loads((tmp_path / "out" / "predictions.json").read_text())
    by_hand = [
        score_answer(written[row["id"]], row["answers"]["text"], unanswerable=True).f1  # type: ignore[call-overload, index]
        for row in rows
    ]
    assert scores["f1"] == pytest.approx(sum(by_hand) / len(by_hand))
    assert scores["f1"] >= 0.6, "withholding all gives that"
    assert "null_threshold" not in scores


def test_a_dry_run_decides_the_first_inputs_and_writes_nothing(classifier: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    words = ["predict", classifier, str(tmp_path / "in.txt"), "--out", str(tmp_path / "out.csv"), "--dry-run"]
    facts = json.loads(ok([*words, "--json"]))
    assert (facts["task"], facts["first"]["text"]) == ("classification", "one")
    assert "inputs per second" in ok(words)
    assert not (tmp_path / "out.csv").exists()


def test_a_bad_row_leaves_no_output_behind(classifier: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"review": "one"}\n{"review": 5}\n')
    result = run.invoke(app, ["predict", classifier, str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")])
    assert isinstance(result.exception, DataError)
    assert "in.jsonl:2" in str(result.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["classifier", "in.jsonl"]


def test_all_other_columns_stand_beside_the_decisions(classifier: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,review,label,day\n007,the old harbour,good,Monday\n008,,bad,Tuesday\n")
    ok(["predict", classifier, str(path), "--out", str(out)])
    first, second = csv.DictReader(out.open())
    assert list(first)[:5] == ["id", "review", "input_label", "day", "label"]
    assert list(first.values())[:4] == ["007", "the old harbour", "good", "Monday"]
    assert (first["warning"], second["warning"]) == ("", "empty text")
    span = make(tmp_path / "span", tokenizer, SpanTask(max_length=64))
    choice = make(tmp_path / "choice", tokenizer, Choice(2, max_length=64))
    tagger = make(tmp_path / "tagger", tokenizer, Tagging(("O", "B-PER"), max_length=64))
    filler = make(tmp_path / "filler", tokenizer, None, "mlm")
    for model, row in (
        (span, {"id": "q", "context": "Maria wrote.", "question": "Who?"}),
        (choice, {"context": "Maria wrote.", "question": "Who?", "choices": ["Maria", "Peter"]}),
        (tagger, {"tokens": ["Maria", "wrote"]}),
        (tagger, {"text": "Maria wrote."}),
        (filler, {"text": "Maria [MASK]."}),
        (filler, {"body": "Maria [MASK]."}),
    ):
        (tmp_path / "in.jsonl").write_text(json.dumps(row | {"key": 7}))
        record = json.loads(ok(["predict", model, str(tmp_path / "in.jsonl")]))
        assert (record["key"], record["warning"]) == (7, None)
        assert not [name for name in record if name.startswith("input_")], "nothing stands there twice"
        assert ("text" in record) == ("body" not in row and "question" not in row), "a column keeps its name"
    (tmp_path / "in.conll").write_text("Maria NN B-PER\nwrote VB O\n")
    record = json.loads(ok(["predict", tagger, str(tmp_path / "in.conll")]))
    assert (record["tags"], len(record["words"])) == (["B-PER", "O"], 2), "known tags stand beside those decided"


def test_a_text_without_a_blank_or_a_word_is_noted_in_its_row(tmp_path: Path, tokenizer: Tokenizer) -> None:
    filler = make(tmp_path / "filler", tokenizer, None, "mlm")
    (tmp_path / "in.csv").write_text("id,text\n1,a [MASK]\n2,no blank\n3,\n")
    rows = [json.loads(line) for line in ok(["predict", filler, str(tmp_path / "in.csv")]).splitlines()]
    assert [(len(row["blanks"]), row["warning"]) for row in rows] == [
        (1, None),
        (0, "no [MASK] in the text"),
        (0, "empty text"),
    ]
    ok(["predict", filler, str(tmp_path / "in.csv"), "--task", "embed", "--out", str(tmp_path / "out.parquet")])
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["vector"] is None, row["warning"]) for row in rows] == [
        (False, None),
        (False, None),
        (True, "empty text"),
    ]
    with pytest.raises(DataError, match=r"^no \[MASK\] in the text"):
        run.invoke(app, ["predict", filler, "no blank"], catch_exceptions=False)
    with pytest.raises(DataError, match=r"^the text is empty"):
        run.invoke(app, ["predict", filler, " ", "--task", "embed"], catch_exceptions=False)


def test_a_table_on_standard_input_is_known_by_its_header(classifier: str) -> None:
    for given in ("id,text\n7,the old harbour\n", "text\tid\nthe old harbour\t7\n", '"id";"text"\n7;the old harbour\n'):
        result = run.invoke(app, ["predict", classifier, "-"], input=given)
        record = json.loads(result.stdout)
        assert (record["id"], record["text"]) == ("7", "the old harbour")
    plain = run.invoke(app, ["predict", classifier, "-"], input="well, text\nmore, text\n")
    assert len(plain.stdout.splitlines()) == 2


def test_parquet_is_written_with_types_and_vectors_as_a_matrix(classifier: str, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"key": [7, 8], "day": [date(2024, 1, 1), None], "review": ["one ship", "two"]}),
        tmp_path / "in.parquet",
    )
    ok(["predict", classifier, str(tmp_path / "in.parquet"), "--out", str(tmp_path / "out.parquet")])
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["key"], row["day"], row["review"]) for row in rows] == [
        (7, date(2024, 1, 1), "one ship"),
        (8, None, "two"),
    ]
    assert rows[0]["probabilities"][rows[0]["label"]] == rows[0]["probability"]
    assert json.loads(ok(["predict", classifier, str(tmp_path / "in.parquet")]).splitlines()[0])["day"] == "2024-01-01"
    words = ["predict", classifier, str(tmp_path / "in.parquet"), "--out", str(tmp_path / "out.npy")]
    ok([*words, "--task", "embed"])
    assert (np.load(tmp_path / "out.npy") == albert.load(classifier).embed(["one ship", "two"])).all()
    with pytest.raises(UsageError, match=r"out\.npy: \.npy is for vectors \(--task embed\), this is classification"):
        run.invoke(app, words, catch_exceptions=False)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_130_and_leaves_no_output_but_what_the_next_run_goes_on_from(
    classifier: str, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "in.txt").write_text("the old harbour was quiet\n" * 1_000_000)
    out = tmp_path / "out.jsonl"
    words = [sys.executable, "-m", "albert", "predict", classifier, str(tmp_path / "in.txt"), "--out", str(out)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (tmp_path / ".out.jsonl.partial").exists():
            assert process.poll() is None, "ended before it wrote anything"
            time.sleep(0.02)
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=15)
        if process.poll() is None:  # Python drops an interrupt that falls into a destructor: people press it again
            process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in errors
    begun = {".out.jsonl.partial", ".out.jsonl.journal"}
    assert {path.name for path in tmp_path.iterdir()} - begun == {"classifier", "in.txt"}


def test_an_interrupted_prediction_goes_on_without_a_row_lost_or_doubled(
    classifier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("key,review\n" + "".join(f"{i},the old harbour {'was ' * (i % 7)}quiet\n" for i in range(500)))
    words = ["predict", classifier, str(source)]
    ok([*words, "--out", str(tmp_path / "whole.csv")])
    monkeypatch.setattr(TorchEngine, "run", stopping(TorchEngine.run, after=3))
    result = run.invoke(app, [*words, "--out", str(tmp_path / "out.csv")])
    assert isinstance(result.exception, Interrupted)
    written = len((tmp_path / ".out.csv.partial").read_text().splitlines()) - 1
    assert f": {written} rows are kept, run the same command to go on" in str(result.exception), "all that were decided"
    assert written > 0
    assert not (tmp_path / "out.csv").exists()
    monkeypatch.undo()
    with (tmp_path / ".out.csv.partial").open("a") as file:
        file.write("half a li")  # written, but not certain: a kill, not an interrupt
    result = run.invoke(app, [*words, "--out", str(tmp_path / "out.csv")], catch_exceptions=False)
    assert "going on after" in result.stderr
    one, other = ([*csv.DictReader((tmp_path / name).open())] for name in ("whole.csv", "out.csv"))
    assert [(row["key"], row["label"]) for row in one] == [(row["key"], row["label"]) for row in other]
    assert len(other) == 500
    assert not list(tmp_path.glob(".out*"))


def stopping(run: Any, *, after: int) -> Any:
    """Return what runs a few batches and is then interrupted."""
    count = iter(range(after))

    def wrapped(*arguments: Any) -> Any:
        if next(count, None) is None:
            raise KeyboardInterrupt
        return run(*arguments)

    return wrapped


def test_a_changed_input_begins_anew_and_a_bad_row_leaves_nothing(
    classifier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"review": f"ship {i}"}) + "\n" for i in range(200)))
    words = ["predict", classifier, str(source), "--out", str(out)]
    monkeypatch.setattr(partial, "EVERY", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(TorchEngine, "run", stopping(TorchEngine.run, after=1))
        assert isinstance(run.invoke(app, words).exception, Interrupted)
    source.write_text("".join(json.dumps({"review": f"dog {i}"}) + "\n" for i in range(100)))
    ok(words)
    assert [json.loads(line)["review"] for line in out.open()] == [f"dog {i}" for i in range(100)]
    out.unlink()
    source.write_text('{"review": "a dog"}\n{"review": 5}\n')
    assert isinstance(run.invoke(app, words).exception, DataError)
    assert {path.name for path in tmp_path.iterdir()} == {"classifier", "in.jsonl"}


def test_long_texts_are_cut_with_a_note_or_read_in_windows(classifier: str, tmp_path: Path) -> None:
    text = "the old harbour was quiet " * 40
    (tmp_path / "in.jsonl").write_text(json.dumps({"review": text}) + "\n" + json.dumps({"review": "short"}) + "\n")
    words = ["predict", classifier, str(tmp_path / "in.jsonl")]
    cut, short = map(json.loads, ok(words).splitlines())
    assert re.fullmatch(r"cut: \d+ of \d+ tokens were not read", cut["warning"])
    assert short["warning"] is None
    whole, other = map(json.loads, ok([*words, "--long", "mean"]).splitlines())
    assert whole["warning"] is None
    assert other["probability"] == pytest.approx(short["probability"], abs=1e-6)
    assert {**other, "probability": 0, "probabilities": 0} == {**short, "probability": 0, "probabilities": 0}
    assert "cut: " in json.loads(ok(["predict", classifier, text, "--json"]))["warning"]
    assert "note: cut: " in run.invoke(app, ["predict", classifier, text]).stderr
    model = albert.load(classifier)
    room = 62
    ids = model.predictor.tokenizer.encode(text)
    count = -(-len(ids) // room)
    parts = [ids[i * len(ids) // count : (i + 1) * len(ids) // count] for i in range(count)]
    said = [model.predictor.engine.run(pack([[2, *part, 3]]), {"classifier": "class"})[0] for part in parts]
    logits = [own["classifier"][0] for own in said]
    mean = np.average(logits, axis=0, weights=[len(part) + 2 for part in parts])
    assert whole["probabilities"]["good"] == pytest.approx(softmax(mean)[1], abs=1e-6)
    with pytest.raises(UsageError, match="did you mean 'mean'"):
        run.invoke(app, [*words, "--long", "mena"], catch_exceptions=False)


def test_questions_choices_tags_and_blanks(tmp_path: Path, tokenizer: Tokenizer) -> None:
    span = make(tmp_path / "span", tokenizer, SpanTask(max_length=64))
    context = "Maria wrote a long letter to her sister."
    record = json.loads(ok(["predict", span, context, "--question", "Who wrote?", "--json"]))
    assert context[record["start"] : record["end"]] == record["answer"]
    (tmp_path / "q.jsonl").write_text(json.dumps({"context": context, "question": "Who?"}))
    assert json.loads(ok(["predict", span, str(tmp_path / "q.jsonl")]))["question"] == "Who?"
    squad = {"data": [{"paragraphs": [{"context": context, "qas": [{"id": "q1", "question": "Who?"}]}]}]}
    (tmp_path / "q.json").write_text(json.dumps(squad))
    assert json.loads(ok(["predict", span, str(tmp_path / "q.json")]))["id"] == "q1"
    choice = make(tmp_path / "choice", tokenizer, Choice(2, max_length=64))
    words = ["predict", choice, context, "--question", "Who?", "--choice", "Maria", "--choice", "Peter"]
    assert json.loads(ok([*words, "--json"]))["answer"] in ("Maria", "Peter")
    assert "choice 0" in ok(words)
    tagger = make(tmp_path / "tagger", tokenizer, Tagging(("O", "B-PER"), max_length=64))
    assert [word["text"] for word in json.loads(ok(["predict", tagger, "Maria wrote", "--json"]))["words"]] == [
        "Maria",
        "wrote",
    ]
    filler = make(tmp_path / "filler", tokenizer, None, "mlm")
    assert len(json.loads(ok(["predict", filler, "a [MASK]", "--top", "2", "--json"]))["blanks"][0]["guesses"]) == 2
    assert len(json.loads(ok(["predict", filler, "a town", "--task", "embed", "--json"]))["vector"]) == 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a text", "--out", "x.docx"], "end it in .jsonl, .csv, .tsv, .json"),
        (["a text", "--task", "fill"], "can't fill: its heads are classifier"),
        (["a text", "--task", "sing"], "--task sing"),
        (["-", "--pair", "x"], "go with one text"),
        (["-", "--columns", "text"], "write it as role=name"),
        (["-", "--columns", "text=a", "--columns", "text=b"], "has been given already"),
        (["-", "--columns", "text=a", "--columns", "pair=a"], "has been given already"),
        (["a text", "--question", "who?"], "--question: classification has no use for it"),
        (["a text", "--choice", "me"], "--choice: classification has no use for it"),
    ],
)
def test_mistakes_are_named(classifier: str, words: list[str], message: str) -> None:
    result = run.invoke(app, ["predict", classifier, *words], input="x\n")
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (None, [], "data.csv: no such file: check the path"),
        ("label\ngood\nbad\n", [], "data.csv: no column of text among 'label'"),
        ("text,label\na,good\n", ["--columns", "text=body"], "no column 'body' for text"),
    ],
)
def test_wrong_inputs_are_named(
    classifier: str, tmp_path: Path, content: str | None, words: list[str], message: str
) -> None:
    if content is not None:
        (tmp_path / "data.csv").write_text(content)
    result = run.invoke(app, ["predict", classifier, str(tmp_path / "data.csv"), *words])
    assert isinstance(result.exception, DataError)
    assert message in str(result.exception)


def test_outputs_that_cannot_be_written_are_refused_before_anything_is_decided(classifier: str, tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("text,label\na,good\nb,bad\n")
    words = ["evaluate", classifier, "--data", str(tmp_path / "dev.csv"), "--dry-run"]
    for option, value, message in (
        ("--predictions", "decisions", "--predictions decisions: the format is told by the name"),
        ("--submission", "glue.zip", "classification is not a task of GLUE"),
    ):
        result = run.invoke(app, [*words, option, value])
        assert isinstance(result.exception, UsageError)
        assert message in str(result.exception)


def test_evaluation_decides_as_prediction_does_and_shows_the_baseline(classifier: str, tmp_path: Path) -> None:
    texts = [f"the old harbour number {number}" for number in range(12)]
    labels = ["good"] * 9 + ["bad"] * 3
    (tmp_path / "dev.csv").write_text(
        "review,stars\n" + "".join(f"{t},{y}\n" for t, y in zip(texts, labels, strict=True))
    )
    words = ["evaluate", classifier, "--data", str(tmp_path / "dev.csv")]
    facts = json.loads(ok([*words, "--predictions", str(tmp_path / "p.jsonl"), "--json"]))
    guesses = [result.label for result in albert.load(classifier).classify(texts)]
    right = sum(guess == label for guess, label in zip(guesses, labels, strict=True))
    assert facts["sets"]["dev"]["scores"]["accuracy"] == pytest.approx(right / 12)
    assert facts["sets"]["dev"]["baseline"]["accuracy"] == 0.75
    written = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["label"] for row in written] == guesses
    shown = ok(words)
    assert "baseline   0.7500" in shown
    assert f"classification, {tmp_path / 'dev.csv'}: 12 rows" in shown  # its own name: it may be anybody's test set
    plan = json.loads(ok([*words, "--dry-run", "--json", "--examples", "5"]))
    assert plan["sets"] == {"dev": {"rows": 5}}


def test_a_submission_holds_the_test_sets_decisions(tmp_path: Path, tokenizer: Tokenizer) -> None:
    glue = tmp_path / "RTE"
    glue.mkdir()
    task = Classification(("entailment", "not_entailment"), max_length=64)
    model = make(tmp_path / "rte", tokenizer, task)
    rows = "".join(f"{number}\tthe end\tthe town\tentailment\n" for number in range(4))
    (glue / "dev.tsv").write_text("index\tsentence1\tsentence2\tlabel\n" + rows)
    (glue / "test.tsv").write_text("index\tsentence1\tsentence2\n0\tthe end\tthe town\n1\ta ship\ta dog\n")
    facts = json.loads(ok(["evaluate", model, "--data", str(glue), "--submission", str(tmp_path / "s.zip"), "--json"]))
    assert facts["task"] == "rte"
    assert facts["sets"]["test"] == {"rows": 2, "scores": None, "baseline": None}
    assert any("RTE.tsv" in note for note in facts["notes"])
    assert (tmp_path / "s.zip").exists()


def test_a_model_without_a_task_is_not_evaluated_on_labelled_data(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "dev.csv").write_text("text,label\nx,1\n")
    result = run.invoke(
        app, ["evaluate", make(tmp_path / "mlm", tokenizer, None, "mlm"), "--data", str(tmp_path / "dev.csv")]
    )
    assert "has no task: it can fill, embed" in str(result.exception)
