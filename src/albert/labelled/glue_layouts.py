"""The data sets of GLUE as they are published: folders, files, columns, classes, official scores.

Labels are the strings of the files, in the order of the public data sets. Opens nothing, so it loads in no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCALE = (0.0, 5.0)  # of STS-B, the only one of numbers
BINARY = ("0", "1")
RTE_LABELS = ("entailment", "not_entailment")
NLI_LABELS = ("entailment", "neutral", "contradiction")
COLA_COLUMNS = ("source", "label", "star", "sentence")


@dataclass(frozen=True)
class Layout:
    """One data set of GLUE: its folder, its columns, its classes and its official score."""

    folder: str
    columns: Mapping[str, str]
    labels: tuple[str, ...] | None  # None: a number
    best: str = "accuracy"
    dev: Mapping[str, str] = field(default_factory=lambda: {"dev": "dev.tsv"})
    test: Mapping[str, str] = field(default_factory=lambda: {"test": "test.tsv"})
    train: str | None = "train.tsv"
    headless: tuple[str, ...] = ()  # the columns of train and dev where they have no header
    dev_columns: Mapping[str, str] | None = None  # where they have other names there
    skip_ragged: bool = False


def _pair(first: str, second: str, label: str = "label") -> dict[str, str]:
    return {"text": first, "pair": second, "label": label}


LAYOUTS: dict[str, Layout] = {
    "cola": Layout("CoLA", {"text": "sentence", "label": "label"}, BINARY, "matthews", headless=COLA_COLUMNS),
    "sst-2": Layout("SST-2", {"text": "sentence", "label": "label"}, BINARY),
    "mrpc": Layout("MRPC", _pair("#1 String", "#2 String", "Quality"), BINARY, "accuracy_f1"),
    "sts-b": Layout("STS-B", _pair("sentence1", "sentence2", "score"), None),
    "qqp": Layout("QQP", _pair("question1", "question2", "is_duplicate"), BINARY, "accuracy_f1", skip_ragged=True),
    "mnli": Layout(
        "MNLI",
        _pair("sentence1", "sentence2", "gold_label"),
        NLI_LABELS,
        dev={"matched": "dev_matched.tsv", "mismatched": "dev_mismatched.tsv"},
        test={"matched": "test_matched.tsv", "mismatched": "test_mismatched.tsv"},
    ),
    "qnli": Layout("QNLI", _pair("question", "sentence"), RTE_LABELS),
    "rte": Layout("RTE", _pair("sentence1", "sentence2"), RTE_LABELS),
    "wnli": Layout("WNLI", _pair("sentence1", "sentence2"), BINARY),
    "ax": Layout(
        "AX",
        _pair("sentence1", "sentence2"),
        NLI_LABELS,
        "matthews",
        dev={"ax": "diagnostic-full.tsv"},
        dev_columns=_pair("Premise", "Hypothesis", "Label"),
        test={"ax": "diagnostic.tsv"},
        train=None,
    ),
}


def glue_name(path: Path) -> str | None:
    """Name the data set whose folder, or whose file, this is."""
    folder = path if path.is_dir() else path.parent
    for name, layout in LAYOUTS.items():
        known = folder.name.lower() in (layout.folder.lower(), name) or (name == "ax" and folder.name == "diagnostic")
        if known and any((folder / file).is_file() for file in official_files(layout)):
            return name if path.is_dir() or path.name in official_files(layout) else None
    return None


def official_files(layout: Layout) -> list[str]:
    """List the files of a data set."""
    return [*([layout.train] if layout.train else []), *layout.dev.values(), *layout.test.values()]
