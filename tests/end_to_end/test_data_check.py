"""`albert data check` on labelled data: what is shown, every problem by line, exit code 3, one JSON document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]


def write(name: str, rows: list[tuple[str, ...]]) -> None:
    Path(name).write_text("".join(",".join(row) + "\n" for row in rows))


GOOD = [("text", "label"), *((f"the cat saw ship {i} leave", "good" if i % 3 else "bad") for i in range(30))]


def test_a_good_table_shows_task_columns_classes_and_lengths(check: Run) -> None:
    write("a.csv", GOOD)
    code, out, err = check("a.csv")
    assert (code, err) == (0, "")
    assert out.startswith("a.csv: 30 rows\ntask: classification\n")
    for line in ("text = 'text': by its name", "label = 'label': by its name", "words per row: median 6", "classes: 2"):
        assert line in out
    assert "bad         10  33.3%" in out
    assert "note:" not in out


def test_every_problem_is_listed_with_its_line_and_the_end_is_3(check: Run) -> None:
    write(
        "a.csv",
        [*GOOD, ("", "good"), ("a dog", ""), ("one", "two", "three"), GOOD[1], ("The Cat saw ship 1 leave", "bad")],
    )
    code, out, err = check("a.csv")
    assert code == 3
    assert "problem: a.csv:32: column 'text' is empty" in out
    assert "problem: a.csv:33: column 'label' is empty" in out
    assert "problem: a.csv:34: 3 fields where the header has 2" in out
    assert "note: 2 rows repeat the text of another: a.csv:35 is a.csv:2" in out
    assert "note: 1 of them with another label than the first: a.csv:36 against a.csv:3" in out
    assert err.startswith("error: 3 problems, the first: a.csv:34: ")  # what can't be read is found first


def test_json_is_one_document_also_when_there_are_problems(check: Run) -> None:
    write("a.csv", [("text", "score"), *((f"a text of {i} words", str(i / 4)) for i in range(30)), ("x y z", "nan")])
    code, out, _ = check("a.csv", "--json")
    facts: dict[str, Any] = json.loads(out)["checks"][0]
    assert code == 3
    assert (facts["task"], facts["rows"], facts["num_problems"]) == ("regression", 30, 1)
    assert facts["columns"] == {"text": "text", "label": "score"}
    assert facts["numbers"]["largest"] == 29 / 4
    assert facts["words"]["longest"] == 5
    assert facts["problems"] == [
        "a.csv:32: column 'score' holds 'nan', must be a finite number: correct it or remove the row"
    ]


def test_many_problems_are_counted_and_the_first_twenty_shown(check: Run) -> None:
    write("a.csv", [*GOOD, *[("", "good")] * 50])
    code, out, _ = check("a.csv")
    assert code == 3
    assert out.count("problem: ") == 20
    assert "… and 30 more problems" in out


def test_a_dev_file_is_checked_against_the_classes_and_rows_of_the_first(check: Run) -> None:
    write("a.csv", GOOD)
    write("dev.csv", [("text", "label"), ("a new text", "good"), GOOD[2], ("another one", "awful")])
    code, out, _ = check("a.csv", "--dev", "dev.csv")
    assert code == 3
    assert "problem: dev.csv:4: label 'awful' is none of 'bad', 'good'" in out
    assert "note: 1 row is in a.csv too, the first: dev.csv:3 is a.csv:3" in out


def test_a_test_file_needs_no_labels_but_texts(check: Run) -> None:
    write("a.csv", GOOD)
    write("test.csv", [("id", "text"), ("1", "a new text"), ("2", "")])
    code, out, _ = check("a.csv", "--test", "test.csv")
    assert code == 3
    assert out.count("problem: ") == 1
    assert "problem: test.csv:3: column 'text' is empty" in out


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        ("tale,story,label", (), "'tale' or 'story' may be the text: say which (--columns text=NAME"),
        ("text,label,extra", ("--columns", "label=lable"), "no column 'lable' for label: did you mean 'label'?"),
    ],
)
def test_columns_in_doubt_end_with_3_and_the_option_to_give(
    check: Run, header: str, words: tuple[str, ...], message: str
) -> None:
    row = tuple(f"some words of {name} here" for name in header.split(","))
    write("a.csv", [(header,), *((*row[:2], f"c{i % 2}") for i in range(4))])
    code, out, err = check("a.csv", *words)
    assert (code, out) == (3, "")
    assert message in err


def test_columns_and_task_can_be_told(check: Run) -> None:
    write(
        "a.csv", [("title", "story", "stars"), *((f"a {i}", f"the story of number {i}", str(i % 5)) for i in range(30))]
    )
    code, out, _ = check("a.csv", "--columns", "text=story", "--columns", "label=stars", "--task", "regression")
    assert code == 0
    assert "task: regression\n  regression: as told\n  text = 'story': as told" in out
    assert "numbers: 0 to 4, mean 2" in out


def test_warnings_of_rare_classes_one_class_only_and_quotes_in_tsv(check: Run) -> None:
    rows = "".join(f'"he said ""{i}"" again"\t{"rare" if i == 7 else "usual"}\n' for i in range(40))
    Path("a.tsv").write_text("text\tlabel\n" + rows)
    code, out, _ = check("a.tsv")
    assert code == 0
    assert "1 class with fewer than 5 rows: 'rare' 1" in out
    assert "98% of the rows are of one class" in out
    assert "and .tsv has no quoting" in out
    write("b.csv", [("text", "label"), ("a b", "x"), ("c d", "x")])
    code, out, _ = check("b.csv")
    assert code == 3
    assert "1 different label in 2 rows" in out


def test_tagged_words_show_their_tags_and_a_warning_is_called_one(check: Run) -> None:
    Path("words.conll").write_text("".join(f"Ann{i} Q-PER\ncame O\n\n" for i in range(12)))
    code, out, _ = check("words.conll")
    assert code == 0
    assert "12 rows\ntask: tagging\nwords per row: median 2" in out
    assert "tags: 2\n  O            12  50.0%\n" in out
    assert "\nwarning: 'Q-PER' looks like a tag of spans" in out


def test_a_folder_of_glue_says_its_rows(check: Run, real_data: Path) -> None:
    code, out, _ = check(str(real_data / "glue" / "WNLI"), "--json")
    facts = json.loads(out)["checks"][0]
    assert code == 0
    assert (facts["task"], facts["rows"]) == ("wnli", {"train": 635, "dev": 71, "test": 146})
    assert facts["classes"] == {"0": 323, "1": 312}
