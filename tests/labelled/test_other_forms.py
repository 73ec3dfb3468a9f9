"""Labelled data as it is published: CoNLL-2003, aclImdb, JSON lists, fastText, names without known endings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.catalog import open_data, read_inputs
from albert.labelled.check import check_labelled
from albert.labelled.request import DataRequest, Opened
from albert.labelled.rows import read_rows
from albert.labelled.table_check import TableCheck
from albert.tasks.classification import Classification
from albert.tasks.tagging import Tagging

ROWS = [
    {"text": f"the {'lovely' if i % 2 else 'awful'} ship came in number {i}", "label": "good" if i % 2 else "bad"}
    for i in range(20)
]
CONLL = "-DOCSTART- -X- -X- O\n\n" + "".join(
    f"EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nlamb{i} NN B-NP O\n\n" for i in range(12)
)


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def sizes(opened: Opened) -> tuple[int, int, int]:
    splits = opened.splits
    return len(splits.train), len(splits.dev["dev"]), len(splits.test.get("test", ()))


def test_conll_2003_opens_under_its_published_names(tmp_path: Path) -> None:
    for name in ("eng.train", "eng.testa", "eng.testb"):
        write(tmp_path / name, CONLL)
    opened = open_data(
        DataRequest(tmp_path / "eng.train", dev=tmp_path / "eng.testa", test=tmp_path / "eng.testb", task=None)
    )
    assert (opened.name, sizes(opened)) == ("tagging", (12, 12, 12))
    assert opened.task.labels == ("O", "B-ORG")  # type: ignore[attr-defined]


def test_a_file_without_a_known_ending_opens_with_a_task_and_is_refused_without(tmp_path: Path) -> None:
    tagged = write(tmp_path / "words.train", CONLL)
    assert open_data(DataRequest(tagged, task="tagging")).name == "tagging"
    contents = {
        "table": "text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in ROWS),
        "tabs": "text\tlabel\n" + "".join(f"{row['text']}\t{row['label']}\n" for row in ROWS),
        "lines": "".join(json.dumps(row) + "\n" for row in ROWS),
        "list": json.dumps(ROWS, indent=1),
        "fasttext": "".join(f"__label__{row['label']} {row['text']}\n" for row in ROWS),
    }
    for name, content in contents.items():
        path = write(tmp_path / f"reviews.{name}", content)
        assert len(open_data(DataRequest(path, task="classification")).splits.train) == 18, name
        with pytest.raises(
            DataError, match=r"the format .* is told by its name.*or say --task.*--task tagging: one word per line"
        ):
            open_data(DataRequest(path))
    write(tmp_path / "picture.raw", "\0\1\2")
    with pytest.raises(DataError, match="the format"):
        open_data(DataRequest(tmp_path / "picture.raw", task="classification"))


def test_a_folder_a_class_is_classification_and_its_train_and_test_are_found(tmp_path: Path) -> None:
    for part, count in (("train", 10), ("test", 4)):
        for label in ("neg", "pos"):
            for i in range(count):
                write(tmp_path / "aclImdb" / part / label / f"{i}_7.txt", f"a {label} film, {part} {i}\nwith two lines")
    write(tmp_path / "aclImdb" / "train" / "unsup" / "0_0.txt", "nobody knows")
    write(tmp_path / "aclImdb" / "README", "about it")
    opened = open_data(DataRequest(tmp_path / "aclImdb"))
    assert (opened.name, sizes(opened)) == ("classification", (18, 2, 8))
    assert opened.task.labels == ("neg", "pos")  # type: ignore[attr-defined]
    assert any("one folder per class: neg, pos; left out" in note and "unsup" in note for note in opened.notes)
    assert not any("fastText" in note for note in opened.notes)
    assert not any("by its name" in note or "'label'" in note for note in opened.notes), "there are no columns"
    assert {Path(example.place.rpartition(":")[0]).parent.name for example in opened.splits.train} == {"neg", "pos"}
    alone = open_data(DataRequest(tmp_path / "aclImdb" / "train"))
    write(tmp_path / "aclImdb" / "train" / "neg" / "0_7.txt", "another text")
    assert open_data(DataRequest(tmp_path / "aclImdb" / "train")).fingerprint != alone.fingerprint
    checks = check_labelled(DataRequest(tmp_path / "aclImdb"))
    assert [check.classes for check in checks if isinstance(check, TableCheck)] == [
        {"neg": 10, "pos": 10},
        {"neg": 4, "pos": 4},
    ]


def test_a_folder_of_texts_is_one_text_per_file_to_decide_about(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "README.txt", "notes.md"):
        write(tmp_path / "mine" / name, f"{name}, first line\nsecond line")
    rows = [row.values for row in read_rows(tmp_path / "mine")]
    assert rows == [{"file": name, "text": f"{name}, first line\nsecond line"} for name in ("a.txt", "b.txt")]
    task = Classification(("bad", "good"))
    examples = list(read_inputs(task, tmp_path / "mine", {}))
    assert [example.others["file"] for example in examples] == ["a.txt", "b.txt"]
    with pytest.raises(DataError, match="can't be learned from"):
        open_data(DataRequest(tmp_path / "mine"))


def test_a_list_of_objects_and_lines_of_them_under_the_name_json_are_rows(tmp_path: Path) -> None:
    listed = write(tmp_path / "list.json", json.dumps(ROWS))
    lines = write(tmp_path / "lines.json", "".join(json.dumps(row) + "\n" for row in ROWS))
    for path in (listed, lines):
        opened = open_data(DataRequest(path))
        assert (opened.name, sizes(opened)[:2]) == ("classification", (18, 2))
    write(tmp_path / "bad.json", '[{"text": "a"}, 3]')
    with pytest.raises(DataError, match=r"bad.json:2: a JSON int, must be an object"):
        list(read_rows(tmp_path / "bad.json"))
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "a b", "qas": []}]}]}
    with pytest.raises(DataError):
        open_data(DataRequest(write(tmp_path / "squad.json", json.dumps(squad)), columns={}))


def test_fasttext_files_have_one_label_or_several(tmp_path: Path) -> None:
    one = write(tmp_path / "one.txt", "".join(f"__label__{row['label']} {row['text']}\n" for row in ROWS))
    assert next(iter(read_rows(one))).values == {"text": ROWS[0]["text"], "label": "bad"}
    opened = open_data(DataRequest(one))
    assert (opened.name, opened.notes[0]) == ("classification", "fastText: every line begins with its label")
    assert not any("by its name" in note for note in opened.notes), "there are no columns"
    many = write(tmp_path / "many.txt", "".join(f"__label__a __label__{i % 3} {ROWS[i]['text']}\n" for i in range(20)))
    opened = open_data(DataRequest(many))
    assert (opened.name, opened.task.labels) == ("multi-label", ("0", "1", "2", "a"))  # type: ignore[attr-defined]
    single = write(tmp_path / "single.txt", "__label__a some words\n__label__2 other words\n")
    opened = open_data(DataRequest(many, dev=single, test=single))
    assert [example.target for example in opened.splits.dev["dev"]] == [(3,), (2,)]
    assert [example.target for example in opened.splits.test["test"]] == [(3,), (2,)]
    with pytest.raises(
        DataError, match=r"many.txt:1: .* must be one class: for several per row say --task multi-label"
    ):
        open_data(DataRequest(one, dev=many))
    odd = write(tmp_path / "odd.txt", "__label__a,b __label__c words\n__label__a,b other words\n" * 9)
    odd_dev = write(tmp_path / "odd-dev.txt", "__label__a,b more words\n")
    assert open_data(DataRequest(odd, dev=odd_dev)).splits.dev["dev"][0].target == (0,)


def test_the_names_beside_whole_numbers_are_the_classes(tmp_path: Path) -> None:
    rows = [row | {"label": int(row["label"] == "good"), "label_text": row["label"]} for row in ROWS]
    opened = open_data(DataRequest(write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))))
    assert opened.task.labels == ("bad", "good")  # type: ignore[attr-defined]
    assert any("the names of the numbers in 'label'" in note for note in opened.notes)
    rows[0]["label_text"] = "odd"  # no longer one name a number
    opened = open_data(DataRequest(write(tmp_path / "b.jsonl", "".join(json.dumps(row) + "\n" for row in rows))))
    assert opened.task.labels == ("0", "1")  # type: ignore[attr-defined]


def test_several_columns_are_one_text_and_one_that_is_left_out_is_said(tmp_path: Path) -> None:
    rows = [{"title": f"Ship {i}", "body": row["text"], "topic": row["label"]} for i, row in enumerate(ROWS)]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert open_data(DataRequest(path)).columns["text"] == "title,body"
    alone = [row | {"remark": f"said by the mate of ship {i}"} for i, row in enumerate(rows)]
    notes = open_data(DataRequest(write(tmp_path / "b.jsonl", "".join(json.dumps(row) + "\n" for row in alone)))).notes
    every = "left out: 'title', 'remark' (--columns text=title,body,remark reads them as one text)"
    assert any(every in note for note in notes)
    request = DataRequest(path, columns={"text": "title,body"})
    opened = open_data(request)
    assert {example.text for example in opened.splits.train} <= {f"{row['title']}\n{row['body']}" for row in rows}
    assert not any("left out" in note for note in opened.notes)
    (check,) = check_labelled(request)
    assert (check.num_problems, check.num_copies) == (0, 0)  # type: ignore[union-attr]
    row = {"title": "New", "body": "never seen before", "topic": "bad"}
    dev = write(tmp_path / "dev.jsonl", json.dumps(row) + "\n")
    (_, against) = check_labelled(DataRequest(path, dev=dev, columns={"text": "title,body"}))
    assert not any("are in" in warning for warning in against.warnings)
    with pytest.raises(DataError, match="no column 'headline' for text"):
        open_data(DataRequest(path, columns={"text": "headline,body"}))


def test_a_tag_with_an_unknown_position_is_warned_of(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll", CONLL + "Peter NNP B-NP Q-PER\n\nMaria NNP B-NP B-PER\nPaul NNP B-NP I-PER\n\n")
    notes = open_data(DataRequest(path)).notes
    assert any(note.startswith("warning: 'Q-PER' is no tag of a span") for note in notes)
    plain = open_data(DataRequest(write(tmp_path / "b.conll", CONLL))).notes
    assert not any("warning" in note for note in plain)
    other = open_data(DataRequest(write(tmp_path / "c.conll", CONLL.replace("B-ORG", "B_ORG")))).notes
    assert any("'B_ORG' looks like a tag of spans, which are written B-NAME, I-NAME" in note for note in other)
    tags = ["Q-PER", "Q-ORG", "I-PER", "I-ORG", "O"]  # half of them, everywhere
    odd = write(tmp_path / "d.conll", "".join(f"{tag}{i} {tag}\n\n" for i in range(8) for tag in tags))
    assert any("'Q-ORG', 'Q-PER' look like tags of spans" in note for note in open_data(DataRequest(odd)).notes)


def test_tags_of_spans_speak_for_a_file_of_any_name(tmp_path: Path) -> None:
    tagged = "# of my own\n" + "".join(f"Maria\t_\tB-PER\nwrote{i}\t_\tO\n\n" for i in range(20))
    for name in ("mine.ner", "mine", "mine.txt", "mine.prüf"):
        path = write(tmp_path / name, tagged)
        assert open_data(DataRequest(path)).name == "tagging"
        words = [example.words for example in read_inputs(Tagging(("O", "B-PER")), path, {})]  # type: ignore[attr-defined]
        assert words[:2] == [("Maria", "wrote0"), ("Maria", "wrote1")]
    for text in ("one text\nand another\n", "Maria\tPER\n", "Maria B-PER wrote\nPaul O\n"):
        with pytest.raises(DataError):
            open_data(DataRequest(write(tmp_path / "other.ner", text)))


def test_a_table_without_a_header_is_said_to_have_none_in_one_line(tmp_path: Path) -> None:
    news = "".join(
        f'{1 + i % 4},"Wall St. bears claw back into number {i}","Reuters - short-sellers, seen\nin the black {i}"\n'
        for i in range(40)
    )
    with pytest.raises(DataError) as problem:
        open_data(DataRequest(write(tmp_path / "news.csv", news)))
    message = str(problem.value)
    assert "news.csv:1: no header: the first line is a row" in message
    assert "\n" not in message
    assert len(message) < len(str(tmp_path)) + 220
    assert message.endswith("such as label,text2,text3")
    keyed = "".join(f"{1000 + i},some words number {i},{'good' if i % 2 else 'bad'}\n" for i in range(40))
    with pytest.raises(DataError, match=r"such as id,text2,label$"):
        open_data(DataRequest(write(tmp_path / "keyed.csv", keyed)))


def test_a_role_that_does_not_exist_is_named_before_its_column_is_looked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    with pytest.raises(UsageError, match=r"--columns foo=bar: 'foo' is no role"):
        open_data(DataRequest(path, columns={"foo": "bar"}))


def table(path: Path, columns: str, rows: list[str]) -> Path:
    return write(path, "\n".join([columns, *rows]) + "\n")


def test_lists_that_a_csv_writes_as_texts_are_lists(tmp_path: Path) -> None:
    cells = ["\"['toxic', 'insult']\"", '"[""toxic""]"', "[]", "\"['insult']\""] * 5
    many = table(tmp_path / "many.csv", "text,labels", [f"the ship {i},{cell}" for i, cell in enumerate(cells)])
    assert open_data(DataRequest(many, task="multi-label")).task.labels == ("insult", "toxic")  # type: ignore[attr-defined]
    rows = [f'"[\'ship\', \'nr{i}\']","[""B-X"", ""O""]"' for i in range(20)]
    tagged = open_data(DataRequest(table(tmp_path / "tags.csv", "tokens,tags", rows)))
    assert tagged.task.labels == ("O", "B-X")  # type: ignore[attr-defined]
    assert ("ship", "nr3") in {example.words for example in (*tagged.splits.train, *tagged.splits.dev["dev"])}
    names = table(tmp_path / "names.csv", "text,label", [f"the ship {i},{'[a]' if i % 2 else '[b]'}" for i in range(8)])
    assert open_data(DataRequest(names)).task.labels == ("[a]", "[b]"), "names in brackets are names"  # type: ignore[attr-defined]


def test_a_tsv_with_columns_of_tokens_and_tags_is_a_table_and_one_with_a_word_per_line_is_not(tmp_path: Path) -> None:
    rows = table(tmp_path / "table.tsv", "tokens\ttags", [f"ship nr{i} came\tB-X O O" for i in range(20)])
    opened = open_data(DataRequest(rows, task="tagging", columns={"tokens": "tokens", "tags": "tags"}))
    assert (opened.task.labels, sum(sizes(opened))) == (("O", "B-X"), 20)  # type: ignore[attr-defined]
    words = write(tmp_path / "words.tsv", "".join(f"ship\tB-X\nnr{i}\tO\n\n" for i in range(20)))
    assert sum(sizes(open_data(DataRequest(words, task="tagging")))) == 20


def test_conll_u_gives_words_and_parts_of_speech(tmp_path: Path) -> None:
    line = "{}\t{}\t_\t{}\t_\t_\t0\troot\t_\t_\n"
    words = [("1", "Ships", "NOUN"), ("2-3", "cannot", "_"), ("2", "can", "AUX"), ("3", "not", "PART")]
    tree = "# text = a b c d e f g h\n" + "".join(line.format(*word) for word in words)
    path = write(tmp_path / "en.conllu", "\n".join(tree + line.format("4", f"w{i}", "X") for i in range(12)))
    opened = open_data(DataRequest(path))
    assert opened.task.labels == ("AUX", "NOUN", "PART", "X")  # type: ignore[attr-defined]
    assert ("Ships", "can", "not", "w5") in {one.words for one in (*opened.splits.train, *opened.splits.dev["dev"])}


def test_a_test_file_that_hides_its_labels_has_none(tmp_path: Path) -> None:
    train = table(tmp_path / "train.csv", "text,label", [f"the ship {i},{i % 2}" for i in range(20)])
    for hidden in ("-1", ""):
        test = table(tmp_path / f"test{hidden}.csv", "text,label", [f"the boat {i},{hidden}" for i in range(3)])
        opened = open_data(DataRequest(train, test=test))
        assert [example.target for example in opened.splits.test["test"]] == [None] * 3
        assert all(check.num_problems == 0 for check in check_labelled(DataRequest(train, test=test)))
    mixed = table(tmp_path / "mixed.csv", "text,label", ["the boat,1", "the raft,"])
    with pytest.raises(DataError, match=r"mixed\.csv:3: column 'label' is empty"):
        open_data(DataRequest(train, test=mixed))


def test_folders_of_classes_may_be_called_high(tmp_path: Path) -> None:
    for name in ("high", "low"):
        for i in range(8):
            write(tmp_path / "prio" / name / f"{i}.txt", f"the ship {name} {i}")
    assert open_data(DataRequest(tmp_path / "prio")).task == Classification(("high", "low"))


def test_a_first_text_where_the_header_must_be_is_not_lost(tmp_path: Path) -> None:
    task = Classification(("bad", "good"))
    lone = table(tmp_path / "lone.csv", "I love this movie", ["so bad", "so good"])
    with pytest.raises(DataError, match=r"lone\.csv.*:1: no header: the first line is a row"):
        list(read_inputs(task, lone, {}))
    named = table(tmp_path / "named.csv", "customer review", ["so bad", "so good"])
    assert [example.text for example in read_inputs(task, named, {})] == ["so bad", "so good"]  # type: ignore[attr-defined]


def test_tags_that_are_numbers_are_warned_of_and_numbers_of_words_are_no_words(tmp_path: Path) -> None:
    lines = [json.dumps({"tokens": ["ship", f"nr{i}"], "ner_tags": [1, 0]}) for i in range(12)]
    assert any(
        "tags are numbers" in note
        for note in open_data(DataRequest(write(tmp_path / "n.jsonl", "\n".join(lines)))).notes
    )
    counted = [f"the old ship came in number {i},{'fine' if i % 2 else 'bad'},{i % 3}" for i in range(20)]
    assert open_data(DataRequest(table(tmp_path / "w.csv", "text,labels,words", counted))).name != "tagging"


def test_a_tagger_reads_several_columns_as_one_text(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "title,body", ["Peter,came"])
    (example,) = read_inputs(Tagging(("O",)), path, {"text": "title,body"})
    assert example.words == ("Peter", "came")  # type: ignore[attr-defined]


def test_the_separator_is_that_of_the_first_line_that_is_not_blank(tmp_path: Path) -> None:
    (row,) = read_rows(write(tmp_path / "t.csv", "\n\ntext;label\nthe ship, the sea;a\n"))
    assert (dict(row.values), row.line) == ({"text": "the ship, the sea", "label": "a"}, 4)


def nli(labels: list[object], *, premises: int = 40) -> str:
    rows = [
        {"premise": f"the ship number {i % premises} came in", "hypothesis": f"so ship {i} is here", "label": label}
        for i, label in enumerate(labels)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("verdicts", "none"), [(["entailment", "neutral", "contradiction"], "-"), ([0, 1, 2], -1)], ids=str
)
def test_pairs_that_nobody_agreed_about_are_left_out_and_counted(
    verdicts: list[object], none: object, tmp_path: Path
) -> None:
    train = write(tmp_path / "train.jsonl", nli([*verdicts * 20, none, none]))
    dev = write(tmp_path / "dev.jsonl", nli([*verdicts, none]))
    clean = write(tmp_path / "clean.jsonl", nli(verdicts * 20))
    for data in (train, clean):  # clean: where dev alone has them
        opened = open_data(DataRequest(data, dev=dev))
        assert set(opened.task.labels) == set(map(str, verdicts))  # type: ignore[attr-defined]
        assert sizes(opened) == (60, 3, 0)
        assert any(f"1 of 4 rows are left out: '{none}', no label" in note for note in opened.notes)
    own, against = check_labelled(DataRequest(train, dev=dev))
    assert (own.num_problems, against.num_problems) == (0, 0)
    assert f"2 rows are left out: '{none}', no label" in own.warnings


def test_minus_one_is_a_class_of_single_texts_and_of_opinions(tmp_path: Path) -> None:
    rows = [{"text": f"the ship {i} came in", "label": i % 3 - 1} for i in range(30)]
    single = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert open_data(DataRequest(single)).task.labels == ("-1", "0", "1")  # type: ignore[attr-defined]
    pairs = write(tmp_path / "b.jsonl", nli([-1, 1] * 20))
    assert open_data(DataRequest(pairs)).task.labels == ("-1", "1")  # type: ignore[attr-defined]
    signs = write(tmp_path / "c.jsonl", nli(["-", "+"] * 20))
    assert open_data(DataRequest(signs)).task.labels == ("+", "-")  # type: ignore[attr-defined]


def test_pairs_of_one_premise_stay_on_one_side_of_a_held_out_dev(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", nli(["entailment", "neutral", "contradiction"] * 60, premises=60))
    splits = open_data(DataRequest(path)).splits
    first = [{example.text for example in part} for part in (splits.train, splits.dev["dev"])]
    assert first[1]
    assert not first[0] & first[1]
    one = write(tmp_path / "b.jsonl", nli(["entailment", "neutral"] * 60, premises=2))  # too few to divide by
    assert len(open_data(DataRequest(one)).splits.dev["dev"]) == 12


def test_classes_that_differ_by_case_are_warned_of_and_not_mixed_up(tmp_path: Path) -> None:
    rows = [{"text": f"the ship {i} came in", "label": ("Sports", "sports", "World")[i % 3]} for i in range(30)]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    dev = write(tmp_path / "dev.jsonl", json.dumps({"text": "a ship", "label": "SPORTS"}) + "\n")
    assert any("'Sports' and 'sports' differ by case only" in note for note in open_data(DataRequest(path)).notes)
    assert any("differ by case only" in warning for warning in check_labelled(DataRequest(path))[0].warnings)
    with pytest.raises(DataError, match="label 'SPORTS' is none of"):
        open_data(DataRequest(path, dev=dev))


def test_comments_with_tabs_and_words_that_are_spaces_are_read(tmp_path: Path) -> None:
    sentence = "Maria\t_\t_\tB-PER\nwrote{i}\t_\t_\tO\n\u00a0\t_\t_\tO\n\n"
    text = "".join(f"# id {i}\tdomain=train\n" + sentence.format(i=i) for i in range(20))
    opened = open_data(DataRequest(write(tmp_path / "a.conll", text)))
    assert opened.task.labels == ("O", "B-PER")  # type: ignore[attr-defined]
    assert {len(example.words) for example in opened.splits.train} == {3}
    assert {example.words[2] for example in opened.splits.train} == {"\u00a0"}


def test_a_tag_that_only_dev_has_is_warned_of(tmp_path: Path) -> None:
    train = write(tmp_path / "a.conll", "Maria B-PER\nwrote O\n\n" * 5)
    dev = write(tmp_path / "b.conll", "Maria B-PER\nCurie I-PER\nwrote O\n\n")
    opened = open_data(DataRequest(train, dev=dev))
    assert opened.task.labels == ("O", "B-PER", "I-PER")  # type: ignore[attr-defined]
    assert "warning: no sentence to train on has 'I-PER'" in opened.notes
