"""The report of a fine-tuning run: its scores, its curves, what it decides rightly and wrongly, what it was made of.

Everything comes from the run folder, so it can be written at any moment of a run and again years later. A folder of
several runs shows them all side by side, and the one whose model was kept in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert.errors import UsageError
from albert.files import read_json
from albert.report import page, runs
from albert.report.decisions import Decided, read_decisions
from albert.report.dev import dev_sections
from albert.report.page import Html
from albert.report.runs import PACE, Chart
from albert.settings import flatten
from albert.train.history import History, is_run, read_history

SUMMARY = "summary.json"
DEV = "valid_"
TEST = "test_"
MOST_CURVES = 3


def build_report(history: History) -> Html:
    """Make the page."""
    summary = _summary(history.folder)
    kept = _kept_run(history.folder, summary)
    own = read_history(kept) if kept else history
    decided = read_decisions(own.folder)
    return page.page(
        f"Fine-tuning: {history.folder.resolve().name}",
        page.paragraph(_state(own, _summary(own.folder))),
        *runs.command(history),
        page.section("Scores on dev", *_scores(own, decided)),
        *_test_section(summary),
        *([page.section("Runs", *_runs(summary))] if kept else []),
        page.section("Curves", *_curves(own, decided)),
        *(dev_sections(decided) if decided else ()),
        page.section("Settings", runs.facts(own.settings)),
        page.section("Data and versions", _origins(history)),
    )


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    return read_json(path, error=UsageError) if path.exists() else {}


def _kept_run(folder: Path, summary: Mapping[str, Any]) -> Path | None:
    """Return the folder of the best of several runs; None where there is one only."""
    name = summary.get("chosen")
    if not isinstance(name, str) or Path(name).name != name or not is_run(folder / name):
        return None
    return folder / name


def _state(history: History, summary: Mapping[str, Any]) -> str:
    started, steps = runs.moment(history.circumstances.get("started")), history.settings.get("train.steps")
    if history.identity.get("several"):  # a common folder from which no run has been chosen
        begun = ", ".join(sorted(path.name for path in history.folder.iterdir() if is_run(path))) or "none"
        return f"No run is finished yet. Begun: {begun}; each has a report of its own. Started {started}."
    total = f"{steps:,}" if isinstance(steps, int) else "unknown"
    words = [f"{'Finished' if summary else 'Not finished'}: {history.last_step:,} of {total} steps. Started {started}."]
    if summary.get("ended_early"):
        words.append("It was ended early.")
    if summary.get("problem"):
        words.append(f"Note: {summary['problem']}.")
    return " ".join(words)


def _scores(history: History, decided: Decided | None) -> Iterator[Html]:
    """Return the scores of the best step, which are those of the model that is kept, beside the last."""
    names = list(dict.fromkeys(name for line in history.metrics for name in line if name.startswith(DEV)))
    if not names:
        yield page.note("Not evaluated yet.")
        return
    deciding = _deciding(history, decided, names)
    step, _ = max(history.series(deciding), key=lambda point: point[1], default=(0, 0.0))
    rows = []
    for name in names:
        points = dict(history.series(name))
        if points:
            at_best = f"{points[step]:.4f}" if step in points else "–"
            rows.append((_title(name), at_best, f"{list(points.values())[-1]:.4f}"))
    yield page.table(("score", f"best model (step {step:,})", "last step"), rows)
    if decided:
        words = decided.bag_of_words
        yield page.paragraph(
            f"Baseline (the best decision that reads no text): {_title(deciding)} {decided.baseline:.4f}."
            + (f" A bag of words (TF-IDF and a linear model): {words:.4f}." if words is not None else "")
        )
    yield page.note(f"{_title(deciding).capitalize()} on dev chose the step, so its score is a little too good.")


def _deciding(history: History, decided: Decided | None, names: Sequence[str]) -> str:
    """Name the score that chose the step; a task without decisions to show (similarity) says it in the run's record."""
    task = history.identity.get("task")
    best = decided.best if decided else task.get("best") if isinstance(task, Mapping) else None
    return f"{DEV}{best}" if best else next(iter(names), f"{DEV}score")


def _test_section(summary: Mapping[str, Any]) -> list[Html]:
    """Show the scores on test data, where there were any."""
    scores = summary.get("test")
    if not isinstance(scores, Mapping) or not scores:
        return []
    rows = [(name.removeprefix(TEST).replace("_", " "), f"{value:.4f}") for name, value in scores.items()]
    words = "Scored once, at the end, by the model that is kept; nothing was chosen by it."
    return [page.section("Scores on test", page.table(("score", "best model"), rows), page.note(words))]


def _title(name: str) -> str:
    return name.removeprefix(DEV).replace("_", " ")


def _runs(summary: Mapping[str, Any]) -> Iterator[Html]:
    """Show several runs side by side."""
    listed = summary.get("runs")
    rows = []
    for run in listed if isinstance(listed, list) else ():
        score, lr = run.get("score"), run.get("lr")
        rows.append(
            (
                str(run.get("folder")) + (" (kept)" if run.get("folder") == summary.get("chosen") else ""),
                f"{score:.4f}" if isinstance(score, float) else "–",
                f"{lr:.2g}" if isinstance(lr, float) else "–",
                str(run.get("best_step")),
                "yes" if run.get("learnt") else "no",
            )
        )
    yield page.table(("run", str(summary.get("score")).replace("_", " "), "rate", "best step", "learnt"), rows)
    figures = ("median", "mean", "deviation", "lowest", "highest")
    if all(isinstance(summary.get(name), float) for name in figures):
        yield page.facts({name: f"{summary[name]:.4f}" for name in figures})
    yield page.note("What follows is of the run that was kept, the best by dev. Compare medians, not best runs.")


def _curves(history: History, decided: Decided | None) -> Iterator[Html]:
    """Draw the loss, the deciding score, and some of the others; say which are left out."""
    names = list(dict.fromkeys(name for line in history.metrics for name in line if name.startswith(DEV)))
    deciding = _deciding(history, decided, names)
    others = {name: _title(name) for name in names if name != deciding}
    yield runs.charts(
        history,
        Chart("Loss in training", {"loss": "training"}, from_zero=True),
        Chart(f"Dev: {_title(deciding)}", {deciding: _title(deciding)}),
        Chart("Dev: other scores", dict(list(others.items())[:MOST_CURVES])),
        *PACE,
    )
    if left_out := list(others.values())[MOST_CURVES:]:
        yield page.note(f"Not drawn, but in the table above and in metrics.jsonl: {', '.join(left_out)}.")


def _origins(history: History) -> Html:
    identity = history.identity
    task, examples = identity.get("task"), identity.get("examples")
    return runs.origins(
        history,
        {
            **({f"task.{name}": value for name, value in task.items()} if isinstance(task, Mapping) else {}),
            **(
                {f"examples.{name}": value for name, value in flatten(examples).items()}
                if isinstance(examples, Mapping)
                else {}
            ),
            "started from": identity.get("model"),
            "its weights (sha256)": identity.get("weights"),
            "data (fingerprint)": identity.get("data"),
        },
    )
