"""GLUE from its folders: real ones where they are, hand-made ones (marked so) where there is no real file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from albert.errors import DataError, UsageError
from albert.labelled.catalog import DataRequest, open_data
from albert.labelled.glue import glue_task
from albert.labelled.glue_layouts import LAYOUTS, glue_name
from albert.tasks.classification import Classification, Regression, TextExample

ROWS = {  # train, dev, test: as the README of the data says
    "CoLA": (8551, 1043, 1063),
    "SST-2": (67349, 872, 1821),
    "MRPC": (3668, 408, 1725),
    "STS-B": (5749, 1500, 1379),
    "RTE": (2490, 277, 3000),
    "WNLI": (635, 71, 146),
    "QNLI": (0, 5463, 0),
}


@pytest.mark.parametrize("folder", ROWS)
def test_real_folders_give_every_row(real_data: Path, folder: str) -> None:
    opened = open_data(DataRequest(real_data / "glue" / folder))
    splits = opened.splits
    counts = (len(splits.train), len(splits.dev["dev"]), len(splits.test.get("test", [])))
    assert counts == ROWS[folder]
    assert opened.name == folder.lower()
    assert all(example.target is not None for example in [*splits.train, *splits.dev["dev"]])
    assert all(example.target is None for example in splits.test.get("test", []))
    assert all(example.text.strip() and (example.pair is None or example.pair.strip()) for example in splits.dev["dev"])


def test_real_rows_are_read_to_the_letter(real_data: Path) -> None:
    cola = open_data(DataRequest(real_data / "glue" / "CoLA", limit_train=1)).splits
    first = cola.dev["dev"][0]
    assert (first.text, first.target) == ("The sailors rode the breeze clear of the rocks.", 1)
    assert first.place.endswith("dev.tsv:1")  # no header
    assert cola.test["test"][0].text == "Bill whistled past the house."
    mrpc = open_data(DataRequest(real_data / "glue" / "MRPC", limit_train=1)).splits.dev["dev"][0]
    assert mrpc.pair == '" The foodservice pie business does not fit our long-term growth strategy .'
    opened = open_data(DataRequest(real_data / "glue" / "STS-B", limit_train=1))
    assert opened.task == Regression()  # its numbers as they are, as everybody trains it
    stsb = opened.splits.dev["dev"][1]
    assert (stsb.text, stsb.pair, stsb.target) == (
        "A young child is riding a horse.",
        "A child is riding a horse.",
        4.75,
    )


def test_the_majority_class_of_real_dev_sets_is_the_published_one(real_data: Path) -> None:
    shares = {}
    for folder in ("CoLA", "MRPC", "RTE", "WNLI"):
        dev = open_data(DataRequest(real_data / "glue" / folder / "dev.tsv"), task=_task(folder)).splits.dev["dev"]
        shares[folder] = round(100 * Counter(example.target for example in dev).most_common(1)[0][1] / len(dev), 1)
    assert shares == {"CoLA": 69.1, "MRPC": 68.4, "RTE": 52.7, "WNLI": 56.3}


def _task(folder: str) -> Classification:
    labels = LAYOUTS[folder.lower()].labels
    assert labels
    return Classification(labels=labels)


def test_the_real_mnli_subset_opens_as_a_table_with_or_without_its_name(real_data: Path) -> None:
    nli = real_data / "nli"
    request = DataRequest(nli / "mnli.subset-train.jsonl", dev=nli / "mnli.dev-matched.jsonl")
    opened = open_data(request)
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (8999, 9815)
    assert opened.task == Classification(labels=("contradiction", "entailment", "neutral"))
    named = open_data(DataRequest(nli / "mnli.subset-dev.jsonl", task="MNLI"))
    assert isinstance(named.task, Classification)
    assert named.task.labels == ("entailment", "neutral", "contradiction")
    assert len(named.splits.train) + len(named.splits.dev["dev"]) == 1000


# Hand-made: there is no real file of QQP, of MNLI in GLUE's form and of the diagnostic set in the shared data.


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Make folders in the official layouts."""
    qqp, mnli, ax = tmp_path / "QQP", tmp_path / "MNLI", tmp_path / "diagnostic"
    for folder in (qqp, mnli, ax):
        folder.mkdir()
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    good = "".join(f'{i}\t1\t2\tIs "{i}" odd?\tWhat is {i}?\t{i % 2}\n' for i in range(6))
    (qqp / "train.tsv").write_text(header + good + "9\t1\t2\tbroken by\n" + "a line end\t0\n")
    (qqp / "dev.tsv").write_text(header + good.replace("odd", "even"))
    (qqp / "test.tsv").write_text("id\tquestion1\tquestion2\n0\tWho?\tWhat?\n")
    parses = ["index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse"]
    shared = [*parses, "sentence1_parse", "sentence2_parse", "sentence1", "sentence2"]
    labels = ["entailment", "neutral", "contradiction"]

    def write(name: str, extra: list[str], count: int) -> None:
        rows = [["x"] * 8 + [f"first {name} {i}", f"second {i}"] + [labels[i % 3]] * len(extra) for i in range(count)]
        (mnli / name).write_text("\n".join("\t".join(row) for row in [shared + extra, *rows]) + "\n")

    write("train.tsv", ["label1", "gold_label"], 6)
    for name, count in (("matched", 3), ("mismatched", 4)):
        write(f"dev_{name}.tsv", [*(f"label{i}" for i in range(1, 6)), "gold_label"], count)
        write(f"test_{name}.tsv", [], count)
    (ax / "diagnostic.tsv").write_text("index\tsentence1\tsentence2\n0\tThe cat sat.\tThe cat did not sit.\n")
    full = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel\n"
    (ax / "diagnostic-full.tsv").write_text(
        full + "\t\tNegation\t\tArtificial\tThe cat sat.\tIt did not.\tcontradiction\n"
    )
    return tmp_path


def test_made_qqp_skips_rows_that_line_ends_have_cut_and_says_so(made: Path) -> None:
    opened = open_data(DataRequest(made / "QQP"))
    assert [example.text for example in opened.splits.train[:2]] == ['Is "0" odd?', 'Is "1" odd?']
    assert (len(opened.splits.train), len(opened.splits.dev["dev"]), len(opened.splits.test["test"])) == (6, 6, 1)
    place = made / "QQP" / "train.tsv"
    assert f"rows with another number of fields than the header, skipped: 2, the first at {place}:8" in opened.notes
    assert opened.task.best == "accuracy_f1"


def test_a_row_of_a_test_set_is_never_skipped(made: Path) -> None:
    with (made / "QQP" / "test.tsv").open("a") as file:
        file.write("1\tHow\n2\tWhy?\tWhere?\n")
    with pytest.raises(DataError, match=r"test.tsv:3: 2 fields where the header has 3"):
        open_data(DataRequest(made / "QQP"))


def test_a_wrong_label_of_a_task_with_fixed_classes_is_no_matter_of_other_rows(made: Path) -> None:
    path = made / "MNLI" / "train.tsv"
    path.write_text(path.read_text().replace("neutral", "maybe"))
    with pytest.raises(DataError, match=r"'maybe' is none of .*, the labels of this task: correct it"):
        open_data(DataRequest(made / "MNLI"))


def test_a_score_of_sts_b_that_can_not_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "STS-B").mkdir()
    rows = [f"a ship {i}\ta boat {i}\t{score}\n" for i, score in enumerate((0, 5, 2.5, 7.5))]
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / "STS-B" / name).write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    with pytest.raises(DataError, match=r"train.tsv:5: score 7.5 must be from 0 to 5"):
        open_data(DataRequest(tmp_path / "STS-B"))


def test_the_baseline_is_the_best_by_the_score_not_always_the_majority() -> None:
    examples = [TextExample("a", "b", target=int(i < 3)) for i in range(10)]
    qqp, sst = glue_task("qqp"), glue_task("sst-2")
    assert isinstance(qqp, Classification)
    assert isinstance(sst, Classification)
    assert qqp.baseline(examples)(examples[0]).label == "1", "accuracy 0.3 and F1 0.46, not 0.7 and 0"
    assert sst.baseline(examples)(examples[0]).label == "0"


def test_made_mnli_has_two_dev_and_two_test_sets(made: Path) -> None:
    splits = open_data(DataRequest(made / "MNLI")).splits
    assert {name: len(examples) for name, examples in splits.dev.items()} == {"matched": 3, "mismatched": 4}
    assert {name: len(examples) for name, examples in splits.test.items()} == {"matched": 3, "mismatched": 4}
    assert [example.target for example in splits.dev["matched"]] == [0, 1, 2]
    assert splits.train[0].text == "first train.tsv 0"
    assert splits.train[0].pair == "second 0"
    assert splits.test["matched"][0].target is None


def test_made_diagnostic_set_is_for_mnli_models_and_has_nothing_to_train_on(made: Path) -> None:
    task = Classification(labels=("LABEL_0", "LABEL_1", "LABEL_2"), max_length=64)
    opened = open_data(DataRequest(made / "diagnostic"), task=task)
    assert (opened.name, opened.splits.train) == ("ax", [])
    assert opened.splits.dev["ax"][0].target == 2
    assert opened.splits.test["ax"][0].pair == "The cat did not sit."
    assert (opened.task.best, opened.task.max_length) == ("matthews", 64)


def test_names_of_folders_files_and_tasks_are_recognised_whatever_their_case(made: Path) -> None:
    assert glue_name(made / "QQP") == "qqp"
    assert glue_name(made / "QQP" / "dev.tsv") == "qqp"
    assert glue_name(made / "QQP" / "mine.tsv") is None
    (made / "sst2").mkdir()
    (made / "sst2" / "train.tsv").write_text("sentence\tlabel\n" + "".join(f"text {i}\t{i % 2}\n" for i in range(40)))
    opened = open_data(DataRequest(made / "sst2", task="SST2"))
    assert opened.name == "sst-2"
    assert (len(opened.splits.train), len(opened.splits.dev["dev"])) == (36, 4)  # no dev.tsv: held out
    above = open_data(DataRequest(made, task="qqp"))  # the folder of folders
    assert len(above.splits.train) == 6


def test_a_model_for_another_task_is_refused_and_one_for_glue_gets_its_score(made: Path) -> None:
    with pytest.raises(UsageError, match="qqp is a task of classification, the model was made for regression"):
        open_data(DataRequest(made / "QQP"), task=Regression())
    with pytest.raises(UsageError, match="mnli has the classes entailment, neutral, contradiction, the model has 0, 1"):
        open_data(DataRequest(made / "MNLI"), task=Classification(labels=("0", "1")))
    shuffled = Classification(labels=("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))
    assert [e.target for e in open_data(DataRequest(made / "MNLI"), task=shuffled).splits.dev["matched"]] == [2, 1, 0]
    assert open_data(DataRequest(made / "QQP"), task=Classification(labels=("0", "1"))).task.best == "accuracy_f1"


def test_wrong_folders_and_files_are_named(made: Path) -> None:
    with pytest.raises(
        DataError, match=r"diagnostic: none of train\.tsv, dev\.tsv, test\.tsv is there: name the folder CoLA"
    ):
        open_data(DataRequest(made / "diagnostic", task="cola"))
    with pytest.raises(UsageError, match="has its own dev and test"):
        open_data(DataRequest(made / "QQP", dev=made / "QQP"))
    train = made / "QQP" / "train.tsv"
    train.write_text(train.read_text().replace("\t1\n", "\t2\n"))
    with pytest.raises(DataError, match=r"train\.tsv:3: label '2' is none of '0', '1'"):
        open_data(DataRequest(made / "QQP"))
