"""Wrong data of every kind: exit code 3 (2 where an option is wrong), file and line, the rule, and no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]
TEXTS = [f"the old ship number {number} left the harbour" for number in range(24)]
PASSAGE = "Maria wrote a long letter."


def lines(rows: list[Any]) -> str:
    return "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)


def labelled(*more: Any) -> str:
    return lines([*({"text": text, "label": "ab"[i % 2]} for i, text in enumerate(TEXTS)), *more])


def scored(*more: str) -> str:
    return "text,score\n" + "".join(f"{text},{i / 7}\n" for i, text in enumerate(TEXTS)) + "".join(more)


def problems(out: str) -> list[str]:
    return [line.removeprefix("problem: ") for line in out.splitlines() if line.startswith("problem: ")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", json.dumps([{"text": "a", "label": "b"}]), "a.jsonl:1: a JSON list, must be an object"),
        ("a.jsonl", '{"text": "a", "label": "b"},\n', "a.jsonl:1: not JSON (Extra data"),
        ("a.jsonl", labelled({"text": "a b", "label": float("inf")}), "a.jsonl:25: column 'label' holds inf"),
        ("a.csv", scored("a b,\n"), "a.csv:26: column 'score' is empty"),
        ("a.csv", scored("a b,much\n"), "a.csv:26: column 'score' holds 'much', must be a finite number"),
        ("a.csv", scored(f"a b,{'9' * 400}\n"), "a.csv:26: column 'score' holds '999"),
        ("a.jsonl", labelled({"text": "a b", "label": {}}), "a.jsonl:25: column 'label' holds {}"),
        (
            "a.csv",
            "the old ship,good\n" + "".join(f"{text},good\n{text} late,bad\n" for text in TEXTS),
            "a.csv:1: no header: the first line is a row, it begins with 'the old ship'",
        ),
        ("a.csv", "text,label\na ship,good\na boat,bad\n", "a.csv: 2 rows with 2 different texts can't be divided"),
        (
            "a.csv",
            "context,question,answer\n" + "".join(f"{PASSAGE} {i},Who {i}?,Maria\n" for i in range(12)),
            "or answer and answer_start",
        ),
        ("a.txt", "ship N\nthe DET\n", "say --task tagging"),
        ("a.json", json.dumps({"text": "a", "label": "b"}), "a.json: data: is missing: SQuAD's files have it"),
        ("a.conll", "ship B-X\nthe O\n", "a.conll: 1 rows with 1 different texts can't be divided"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(check: Run, name: str, content: str, message: str) -> None:
    Path(name).write_text(content)
    code, _, err = check(name)
    assert (code, message in err) == (3, True), err


def test_utf_16_without_a_mark_is_named(check: Run) -> None:
    Path("a.csv").write_bytes(scored().encode("utf-16-le"))
    code, _, err = check("a.csv")
    assert (code, "a.csv:1: the header holds NUL characters, as UTF-16" in err) == (3, True)


def test_a_few_wrong_values_do_not_make_another_task_of_a_column(check: Run) -> None:
    rows = [{"text": text, "labels": ["a"] if i % 2 else ["a", "b"]} for i, text in enumerate(TEXTS)]
    Path("a.jsonl").write_text(lines([*rows, {"text": "x y", "labels": 7}, {"text": "x z", "labels": [{}]}]))
    code, out, _ = check("a.jsonl")
    assert (code, "task: multi-label" in out) == (3, True)
    assert [problem.split(",")[0] for problem in problems(out)] == [
        "a.jsonl:25: column 'labels' holds 7",
        "a.jsonl:26: column 'labels' holds {}",
    ]


@pytest.mark.parametrize(
    ("name", "content", "told", "message"),
    [
        ("a.jsonl", labelled(), "txt=text", "classification has no such role: did you mean 'text'?"),
        ("a.jsonl", labelled(), "question=text", "classification has no such role: known: label, pair, text"),
        ("a.jsonl", lines([{"tokens": ["a"], "tags": ["O"]}]), "tokns=tokens", "tagging has no such role"),
        ("a.json", json.dumps({"data": []}), "context=text", "SQuAD's JSON has no columns"),
        ("a.conll", "ship B-X\nthe O\n", "tokens=word", "a CoNLL file has no names of columns"),
    ],
)
def test_a_role_that_a_task_does_not_have_is_refused(
    check: Run, name: str, content: str, told: str, message: str
) -> None:
    Path(name).write_text(content)
    code, _, err = check(name, "--columns", told)
    assert (code, message in err) == (2, True), err


def test_a_missing_column_is_said_once_and_a_missing_dev_file_by_its_name(check: Run) -> None:
    Path("a.jsonl").write_text(labelled())
    Path("dev.jsonl").write_text(lines([{"text": text} for text in TEXTS]))
    code, out, _ = check("a.jsonl", "--dev", "dev.jsonl")
    assert code == 3
    assert problems(out) == [
        "dev.jsonl:1: no column 'label' for label: known: text "
        "(rename it, or --columns label=NAME, which holds for all files)"
    ]
    assert check("a.jsonl", "--dev", "none.jsonl")[::2] == (3, "error: none.jsonl: no such file: check the path\n")


def test_every_wrong_question_with_choices_is_listed(check: Run) -> None:
    good = [{"question": text, "choices": ["a", "b", "c", "d"], "label": i % 4} for i, text in enumerate(TEXTS)]
    bad: list[Any] = [good[0] | {"choices": ["a", "b", "c"]}, "{\n", good[1] | {"label": 9}, good[2] | {"choices": "x"}]
    Path("a.jsonl").write_text(lines([*good, *bad]))
    code, out, _ = check("a.jsonl")
    assert (code, out.splitlines()[0]) == (3, "a.jsonl: train 22, dev 2")
    assert sorted(problem[:24] for problem in problems(out)) == [
        "a.jsonl:25: 3 choices, m",
        "a.jsonl:26: not JSON (Ex",
        "a.jsonl:27: label '9' is",
        "a.jsonl:28: column 'choi",
    ]


def test_choices_without_labels_are_a_test_set_and_nothing_else(check: Run) -> None:
    good = [{"question": text, "choices": ["a", "b"], "label": i % 2} for i, text in enumerate(TEXTS)]
    Path("a.jsonl").write_text(lines(good))
    Path("b.jsonl").write_text(lines([{"question": text, "choices": ["a", "b"]} for text in TEXTS]))
    assert check("a.jsonl", "--test", "b.jsonl")[0] == 0
    for words in (("b.jsonl",), ("a.jsonl", "--dev", "b.jsonl")):
        code, out, err = check(*words)
        assert (code, "b.jsonl:1: no column" in err, len(problems(out)) <= 1) == (3, True, True)


def test_every_wrong_word_and_sentence_is_listed(check: Run) -> None:
    sentences = [f"ship{number} B-X\nleft O\n\n" for number in range(12)]
    Path("a.conll").write_text("".join([*sentences, "lonely\nthe O\n\n", "one two O\n"]))
    code, out, _ = check("a.conll")
    assert (code, [problem.split(":")[1] for problem in problems(out)]) == (3, ["37", "40"])
    Path("dev.conll").write_text("ship B-Y\n\nleft O\n\nship B-Z\n")
    Path("a.conll").write_text("".join(sentences))
    code, out, _ = check("a.conll", "--dev", "dev.conll")
    assert (code, [problem.split(":")[1] for problem in problems(out)]) == (3, ["1", "5"])
    rows: list[Any] = [{"tokens": ["a", "b", f"c{i}"], "tags": ["O", "B-X", "O"]} for i in range(18)]
    Path("a.jsonl").write_text(lines([*rows, {"tokens": ["a"], "tags": ["O", "O"]}, {"tokens": [], "tags": []}]))
    code, out, _ = check("a.jsonl")
    assert (code, [problem.split(":")[1] for problem in problems(out)]) == (3, ["19", "20"])


def squad(*qas: dict[str, Any]) -> str:
    asked = [
        {"id": f"{i}", "question": "Who?", "answers": [{"text": "Maria", "answer_start": 0}]} | one
        for i, one in enumerate(qas)
    ]
    paragraphs = [{"context": f"{PASSAGE} {i}", "qas": [one]} for i, one in enumerate(asked)]
    return json.dumps({"data": [{"title": "A", "paragraphs": paragraphs}, {"paragraphs": [{"context": 5}]}]})


def test_every_wrong_answer_is_listed(check: Run) -> None:
    wrong = [
        {"answers": [{"text": "Maria", "answer_start": 99}]},
        {"answers": [{"text": "Peter", "answer_start": 0}]},
        {"question": ""},
        {"id": "0"},
    ]
    Path("a.json").write_text(squad({}, {}, {}, *wrong))
    code, out, _ = check("a.json")
    assert (code, out.splitlines()[0]) == (3, "a.json: train 2, dev 1")
    assert [problem[: problem.rindex("]") + 1] for problem in (p.split(": ")[1] for p in problems(out)[:4])] == [
        f"data[0].paragraphs[{number}].qas[0]{'.answers[0]' if number < 5 else ''}" for number in (3, 4, 5, 6)
    ]
    assert problems(out)[4].startswith("a.json: data[1].paragraphs[0].context='5': must be a text")
    good = [{"context": f"{PASSAGE} {i}", "question": "Who?", "answer": "Maria", "answer_start": 0} for i in range(9)]
    Path("b.jsonl").write_text(lines([*good, good[0] | {"answer_start": 7}, good[1] | {"context": ""}]))
    code, out, _ = check("b.jsonl")
    assert (code, [problem.split(":")[1] for problem in problems(out)]) == (3, ["10", "11"])


def test_every_wrong_row_of_a_glue_folder_is_listed_and_its_columns_can_be_told(check: Run) -> None:
    Path("SST-2").mkdir()
    rows = [f"{text}\t{i % 2}\n" for i, text in enumerate(TEXTS)]
    Path("SST-2/train.tsv").write_text("".join(["sentence\tlabel\n", *rows, "\t1\n", "a b\t2\n", "a\tb\tc\n"]))
    Path("SST-2/dev.tsv").write_text("sentence\tlabel\na b\t7\na c\t1\n")
    code, out, _ = check("SST-2")
    assert (code, out.splitlines()[0]) == (3, "SST-2: train 24, dev 1")
    assert sorted(problem.split(": ")[0] for problem in problems(out)) == [
        "SST-2/dev.tsv:2",
        "SST-2/train.tsv:26",
        "SST-2/train.tsv:27",
        "SST-2/train.tsv:28",
    ]
    for part in ("train", "dev"):
        Path(f"SST-2/{part}.tsv").write_text("".join(["text\tlabel\n", *rows]))
    code, out, _ = check("SST-2")
    assert (code, len(problems(out))) == (3, 3)  # the column, in both files, and what follows from it
    assert check("SST-2", "--columns", "text=text")[0] == 0


def test_every_wrong_question_of_race_is_listed(check: Run) -> None:
    question: dict[str, Any] = {"questions": ["Who?"], "options": [["a", "b", "c", "d"]], "answers": ["A"]}
    files: dict[str, Any] = {
        "0": {"article": "One."} | question,
        "1": {"article": "Two."} | question | {"options": [["a", "b", "c"]]},
        "2": {"article": "Three."} | question | {"answers": ["E"]},
        "3": question,
        "4": {"article": "Four."} | question,
    }
    Path("race/train/middle").mkdir(parents=True)
    for name, content in files.items():
        Path(f"race/train/middle/{name}.txt").write_text(json.dumps(content))
    Path("race/train/middle/5.txt").write_text('{"article": "x",}')
    code, out, _ = check("race")
    assert (code, out.splitlines()[0]) == (3, "race: train 1, dev 1")
    assert [problem.split(": ")[0] for problem in problems(out)] == [f"race/train/middle/{n}.txt" for n in (1, 2, 3, 5)]
