"""How labelled data is checked and shown: text for people, dicts for JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert.cli.stores import number_of
from albert.errors import DataError

if TYPE_CHECKING:
    from albert.labelled.request import DataRequest, Opened
    from albert.labelled.table_check import TableCheck

CLASSES = 30  # that are shown; the others are counted
NAME = 40  # characters of a class that are shown


def check_labelled(request: DataRequest) -> list[dict[str, Any]]:
    """Check labelled data, every row of it."""
    from albert.labelled.catalog import official_name, recognise
    from albert.labelled.detection import DETECT_ROWS, detect
    from albert.labelled.rows import read_rows, sample_rows
    from albert.labelled.table_check import check_table, shared_rows
    from albert.labelled.targets import KINDS

    task = official_name(request.task) if request.task else recognise(request.data) if request.data.exists() else None
    if task not in (None, *KINDS):
        return [_check_opened(replace(request, task=task))]
    found = detect(sample_rows(request.data, DETECT_ROWS), request.data, columns=request.columns, task=task)
    if found.task not in KINDS:
        return [_check_opened(replace(request, task=found.task))]
    train = check_table(request.data, found, divided=request.dev is None)
    checks = [table_facts(train)]
    for name, path in (("dev", request.dev), ("test", request.test)):
        if path is not None:
            first = next(read_rows(path, on_bad=lambda _place, _why: None), None)
            labelled = name == "dev" or first is None or found.columns["label"].split(",")[0] in first.values
            check = check_table(path, found, classes=tuple(train.classes), labelled=labelled)
            check.warnings += shared_rows(request.data, path, found.columns)
            checks.append(table_facts(check) | {"split": name})
    return checks


def _check_opened(request: DataRequest) -> dict[str, Any]:
    """Check data that is not a table of texts, by opening it: whatever breaks a rule is noted and passed over."""
    from albert.labelled.catalog import open_data
    from albert.labelled.table_check import PROBLEMS

    problems: list[str] = []
    try:
        facts = opened_facts(
            request.data, open_data(replace(request, on_problem=lambda problem: problems.append(str(problem))))
        )
    except DataError as problem:
        if not problems:
            raise
        facts = {"data": str(request.data), "task": request.task, "rows": 0, "classes": {}, "warnings": []}
        problems.append(str(problem))
    return facts | {"num_problems": len(problems), "problems": problems[:PROBLEMS]}


def table_facts(check: TableCheck) -> dict[str, Any]:
    """Gather what the check of a table found."""
    return {
        "data": str(check.path),
        "task": check.found.task,
        "columns": dict(check.found.columns),
        "reasons": list(check.found.reasons),
        "rows": check.num_rows,
        "classes": check.classes,
        "numbers": check.numbers,
        "words": asdict(check.lengths) if check.lengths else None,
        "copies": check.num_copies,
        "conflicting_copies": check.num_conflicts,
        "warnings": check.warnings,
        "num_problems": check.num_problems,
        "problems": check.problems,
    }


def opened_facts(path: Path, opened: Opened) -> dict[str, Any]:
    """Gather what opening a data set of several files, or of a form of its own, says."""
    splits = opened.splits
    rows = {"train": len(splits.train)} | {name: len(examples) for name, examples in splits.dev.items()}
    rows |= {name if name not in rows else f"test {name}": len(examples) for name, examples in splits.test.items()}
    labels = getattr(opened.task, "labels", ())
    targets = [getattr(example, "target", None) for example in splits.train or next(iter(splits.dev.values()), ())]
    counts = Counter(target for target in targets if isinstance(target, int))
    return {
        "data": str(path),
        "task": opened.name,
        "columns": dict(opened.columns),
        "rows": rows,
        "classes": {label: counts[number] for number, label in enumerate(labels)} if counts else {},
        "fingerprint": opened.fingerprint,
        "warnings": opened.notes,
    }


def labelled_text(facts: dict[str, Any]) -> str:
    """Write what a check found."""
    rows = facts["rows"]
    counted = number_of(rows, "row") if isinstance(rows, int) else _splits_text(rows)
    title = f"{facts['data']}: {counted}"
    lines = [title if "split" in facts else f"{title}\ntask: {facts['task']}"]
    if "split" not in facts:
        lines += [f"  {reason}" for reason in facts.get("reasons", [])]
    if words := facts.get("words"):
        lines.append(
            f"words a row: median {words['median']:,.0f}, mean {words['mean']:,.1f}, "
            f"95% up to {words['percentile_95']:,.0f}, longest {words['longest']:,}"
        )
    if facts.get("numbers"):
        numbers = facts["numbers"]
        lines.append(
            f"numbers: {numbers['least']:g} to {numbers['largest']:g}, mean {numbers['mean']:.3g}, "
            f"deviation {numbers['deviation']:.3g}"
        )
    several = facts["task"] == "multi-label" and isinstance(rows, int)  # classes a row: shares are of the rows
    lines += _classes_text(facts["classes"], total=rows if several else sum(facts["classes"].values()))
    lines += [f"note: {warning}" for warning in facts["warnings"]]
    lines += [f"problem: {problem}" for problem in facts["problems"]]
    if facts["num_problems"] > len(facts["problems"]):
        lines.append(f"… and {facts['num_problems'] - len(facts['problems']):,} more problems")
    return "\n".join(lines)


def _splits_text(rows: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in rows.items())


def _classes_text(classes: dict[str, int], *, total: int) -> list[str]:
    if not total or not classes:
        return []
    lines = [f"classes: {len(classes):,}"]
    shown = list(classes.items())[:CLASSES]
    width = min(NAME, max(len(label) for label, _ in shown))
    for label, count in shown:
        name = label if len(label) <= NAME else label[: NAME - 1] + "…"
        lines.append(f"  {name:{width}} {count:>9,}  {count / total:.1%}")
    return [*lines, *([f"  … and {len(classes) - CLASSES:,} more"] if len(classes) > CLASSES else [])]
