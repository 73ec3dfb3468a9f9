"""What the reports of all runs have in common: command, curves, settings and versions, from the run folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from albert.report import page
from albert.report.drawing import Curve, draw_curves
from albert.report.page import Html
from albert.train.history import History


@dataclass(frozen=True)
class Chart:
    """A figure of logged metrics: each by its name in metrics.jsonl, with the title of its curve."""

    title: str
    metrics: Mapping[str, str]
    unit: Literal["plain", "percent"] = "plain"
    from_zero: bool = False


PACE = (
    Chart("Learning rate", {"lr": "rate"}, from_zero=True),
    Chart("Norm of the gradient", {"gradient_norm": "norm"}, from_zero=True),
    Chart("Tokens per second", {"tokens_per_second": "tokens/s"}, from_zero=True),
)


def charts(history: History, *wanted: Chart) -> Html:
    """Draw what was logged; a figure without a point is left out."""
    drawn = []
    for chart in wanted:
        curves = [
            Curve(title, history.series(name), markers=name.startswith("valid_"))
            for name, title in chart.metrics.items()
        ]
        if curves := [curve for curve in curves if curve.points]:
            drawing = draw_curves(curves, label=chart.title, unit=chart.unit, from_zero=chart.from_zero)
            drawn.append(page.figure(chart.title, drawing))
    return page.figures(*drawn) if drawn else page.note("Nothing is logged yet.")


def moment(value: Any) -> str:
    """Return a time of run.json in words: 17 November 2026, 09:26 UTC."""
    try:
        when = datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError):
        return "at an unknown time"
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def command(history: History) -> list[Html]:
    """Show the command that started the run, where it is known."""
    words = history.circumstances.get("command")
    return [page.command(shlex.join(str(word) for word in words))] if isinstance(words, list) and words else []


def origins(history: History, named: Mapping[str, Any]) -> Html:
    """List what a run was made from, then processes and versions."""
    versions = history.circumstances.get("versions")
    values = {**named, "processes": history.circumstances.get("processes")}
    return facts(values | (versions if isinstance(versions, dict) else {}))


def facts(values: Mapping[str, Any]) -> Html:
    """List names and values of any kind."""
    return page.facts({name: "none" if value is None else str(value) for name, value in values.items()})
