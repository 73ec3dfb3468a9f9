"""How the check of labelled data is shown: text for people, dicts for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from albert.cli.stores import number_of

if TYPE_CHECKING:
    from albert.labelled.check import OpenedCheck
    from albert.labelled.table_check import TableCheck

CLASSES = 30  # that are shown; the others are counted
NAME = 40  # characters of a class that are shown


def table_facts(check: TableCheck) -> dict[str, Any]:
    """Gather what the check of a table found."""
    facts: dict[str, Any] = {
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
    return facts | {"split": check.split} if check.split else facts


def opened_facts(check: OpenedCheck) -> dict[str, Any]:
    """Gather what opening a data set of several files, or of a form of its own, says."""
    facts: dict[str, Any] = {"data": str(check.path), "task": check.task}
    if check.fingerprint is None:
        facts |= {"rows": 0, "classes": {}}
    else:
        facts |= {"columns": dict(check.columns), "rows": dict(check.rows), "classes": dict(check.classes)}
        facts |= {"fingerprint": check.fingerprint}
    return facts | {
        "warnings": list(check.warnings),
        "num_problems": check.num_problems,
        "problems": list(check.problems),
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
            f"words per row: median {words['median']:,.0f}, mean {words['mean']:,.1f}, "
            f"95% up to {words['percentile_95']:,.0f}, longest {words['longest']:,}"
        )
    if facts.get("numbers"):
        numbers = facts["numbers"]
        lines.append(
            f"numbers: {numbers['least']:g} to {numbers['largest']:g}, mean {numbers['mean']:.3g}, "
            f"deviation {numbers['deviation']:.3g}"
        )
    several = facts["task"] == "multi-label" and isinstance(rows, int)  # shares are of the rows, not of the labels
    total = rows if several else sum(facts["classes"].values())
    lines += _classes_text(facts["classes"], total=total, name="tags" if facts["task"] == "tagging" else "classes")
    lines += [text if text.startswith("warning: ") else f"note: {text}" for text in facts["warnings"]]
    lines += [f"problem: {problem}" for problem in facts["problems"]]
    if facts["num_problems"] > len(facts["problems"]):
        lines.append(f"… and {facts['num_problems'] - len(facts['problems']):,} more problems")
    return "\n".join(lines)


def _splits_text(rows: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in rows.items())


def _classes_text(classes: dict[str, int], *, total: int, name: str) -> list[str]:
    if not total or not classes:
        return []
    lines = [f"{name}: {len(classes):,}"]
    shown = list(classes.items())[:CLASSES]
    width = min(NAME, max(len(label) for label, _ in shown))
    for label, count in shown:
        short = label if len(label) <= NAME else label[: NAME - 1] + "…"
        lines.append(f"  {short:{width}} {count:>9,}  {count / total:.1%}")
    return [*lines, *([f"  … and {len(classes) - CLASSES:,} more"] if len(classes) > CLASSES else [])]
