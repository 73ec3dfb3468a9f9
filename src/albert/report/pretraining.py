"""The report of a pre-training run: how it ended, its curves, and what it was made of.

Everything comes from the run folder, so it can be written at any moment of a run and again years later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from albert.report import page, runs
from albert.report.page import Html
from albert.report.runs import PACE, Chart
from albert.train.history import History

ACCURACIES = {
    "valid_mlm_accuracy": "masked words (MLM)",
    "valid_sop_accuracy": "sentence order (SOP)",
    "valid_nsp_accuracy": "next sentence (NSP)",
}


def build_report(history: History) -> Html:
    """Make the page."""
    return page.page(
        f"Pre-training: {history.folder.resolve().name}",
        page.paragraph(_state(history)),
        *runs.command(history),
        page.section("At the end" if _is_finished(history) else "So far", *_results(history)),
        page.section("Curves", _curves(history)),
        page.section("Settings", runs.facts(history.settings)),
        page.section("Data and versions", _origins(history)),
    )


def _steps(history: History) -> int | None:
    steps = history.settings.get("train.steps")
    return steps if isinstance(steps, int) else None


def _is_finished(history: History) -> bool:
    return history.last_step > 0 and history.last_step == _steps(history)


def _state(history: History) -> str:
    steps, started = _steps(history), runs.moment(history.circumstances.get("started"))
    total = f"{steps:,}" if steps else "unknown"
    if _is_finished(history):
        return f"Finished: {total} steps. Started {started}."
    return f"Not finished: {history.last_step:,} of {total} steps are logged. Started {started}."


def _results(history: History) -> Iterator[Html]:
    """Return the scores on held-out text, and the training loss beside the held-out one."""
    rows = []
    loss, points = history.recent_mean("mlm_loss"), history.series("valid_mlm_loss")
    if points:
        rows.append(("MLM loss", f"{points[-1][1]:.3f}", *_best(points, lowest=True, form=".3f")))
    for name, title in ACCURACIES.items():
        if scores := history.series(name):
            rows.append((title, f"{scores[-1][1]:.1%}", *_best(scores, lowest=False, form=".1%")))
    if rows:
        yield page.table(("held-out", "last", "best", "at step"), rows)
    else:
        yield page.note("No held-out evaluation: the run had no held-out store (--valid), or has not come to one yet.")
    if loss is not None:
        gap = f" The held-out loss lies {points[-1][1] - loss:+.3f} from it." if points else ""
        yield page.paragraph(f"MLM loss in training: {loss:.3f}, the mean over the last tenth of the steps.{gap}")
        yield page.note(
            "The training loss was logged while the weights moved, on masks drawn anew. For both losses of the final "
            "weights on fixed examples: albert evaluate RUN --data HELD-OUT --train STORE."
        )
    if skipped := _bad_steps(history):
        yield page.paragraph(f"Logged losses that were not finite numbers: {skipped:,}.")


def _best(points: Sequence[tuple[int, float]], *, lowest: bool, form: str) -> tuple[str, str]:
    step, value = (min if lowest else max)(points, key=lambda point: point[1])
    return f"{value:{form}}", f"{step:,}"


def _bad_steps(history: History) -> int:
    return sum(not math.isfinite(line["loss"]) for line in history.metrics if "loss" in line)


def _curves(history: History) -> Html:
    objective = str(history.settings.get("data.objective", "")).upper()
    return runs.charts(
        history,
        Chart("Loss in training, all objectives", {"loss": "training"}),
        Chart("Masked words: loss", {"mlm_loss": "training", "valid_mlm_loss": "held-out"}),
        Chart(
            "Masked words: accuracy",
            {"mlm_accuracy": "training", "valid_mlm_accuracy": "held-out"},
            unit="percent",
            from_zero=True,
        ),
        Chart(
            "Order of segments: accuracy",
            {
                "order_accuracy": f"training ({objective})",
                "valid_sop_accuracy": "held-out SOP",
                "valid_nsp_accuracy": "held-out NSP",
            },
            unit="percent",
        ),
        *PACE,
    )


def _origins(history: History) -> Html:
    identity = history.identity
    return runs.origins(
        history,
        {"model": identity.get("model"), "store": identity.get("store"), "held-out store": identity.get("valid")},
    )
