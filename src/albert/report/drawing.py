"""Curves and pairs of values as inline SVG, drawn by matplotlib without its global state.

Text stays text, set in the reader's font; colours are the page's variables, so one drawing serves light and dark. A
drawing is small by design: on a phone it is shown at its own size, so its letters can be read. The same curves give
the same bytes.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from albert.report.page import COLOURS, Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]

SIZE = (4.2, 2.7)  # inches of 72 units: no wider than a phone
ROUND = [1, 2, 5, 10]  # ticks are multiples of these
LEGEND_WIDTH, HANDLE = 54, 5  # characters of a line of the legend; what stands before a name and after it
MOST_POINTS = 400  # a curve has no more: beyond it neighbours are averaged
# What matplotlib is told, and what the page makes of it. It must not meet these colours by chance.
INKS = {"#010203": "var(--ink)", "#010204": "var(--faint)", "#010205": "var(--line)"}
HUES = {"#010206": "var(--first)", "#010207": "var(--second)", "#010208": "var(--third)"}
INK, FAINT, LINE = INKS
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "albert",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "axes.edgecolor": LINE,
    "grid.color": LINE,
    "legend.labelcolor": INK,
}


@dataclass(frozen=True)
class Curve:
    """A named line through points."""

    name: str
    points: Points
    markers: bool = False  # few points, each a measurement of its own


def draw_curves(
    curves: Sequence[Curve],
    *,
    label: str,
    unit: Literal["plain", "percent"] = "plain",
    from_zero: bool = False,
    across: str = "step",
) -> Html:
    """Draw curves over steps; `label` is what a screen reader says."""
    assert len(curves) <= len(HUES), "a figure has as many curves as the page has hues"
    with _canvas(label) as (figure, axes, drawn):
        for curve, hue in zip(curves, HUES, strict=False):
            steps, values = zip(*thin(curve.points), strict=True) if curve.points else ((), ())
            mark, width = ("o", 1.6) if curve.markers or len(steps) == 1 else ("", 1.2)
            axes.plot(steps, values, color=hue, linewidth=width, marker=mark, markersize=3.5, label=curve.name)
        _dress(axes, unit=unit, from_zero=from_zero)
        axes.set_xlabel(across, color=FAINT)
        if len(curves) > 1:
            columns = max(1, LEGEND_WIDTH // max(len(curve.name) + HANDLE for curve in curves))
            figure.legend(loc="outside upper left", ncols=columns, frameon=False, handlelength=1.2, columnspacing=1.0)
    return drawn[0]


def draw_pairs(
    points: Points,
    *,
    label: str,
    across: str,
    up: str,
    unit: Literal["plain", "percent"] = "plain",
    joined: bool = False,
) -> Html:
    """Draw points, each a pair of values that should be equal, with the line on which they would be."""
    size, width, alpha = (4.0, 1.2, 1.0) if joined else (2.5, 0.0, 0.5)
    with _canvas(label) as (_, axes, drawn):
        values = [value for point in points for value in point] or [0.0]
        low, high = (0.0, 1.0) if unit == "percent" else (min(values), max(values))
        axes.plot([low, high], [low, high], color=FAINT, linewidth=0.8, linestyle="--")
        chosen = points[:: -(-len(points) // MOST_POINTS) or 1]
        across_values, up_values = [x for x, _ in chosen], [y for _, y in chosen]
        hue = next(iter(HUES))
        axes.plot(across_values, up_values, color=hue, linewidth=width, marker="o", markersize=size, alpha=alpha)
        _dress(axes, unit=unit, from_zero=False)
        _scale_values(axes.xaxis, unit)
        axes.set_xlabel(across, color=FAINT)
        axes.set_ylabel(up, color=FAINT)
    return drawn[0]


@contextmanager
def _canvas(label: str) -> Iterator[tuple[Figure, Axes, list[Html]]]:
    """Yield a figure with its axes and, once they are drawn on, the drawing."""
    import matplotlib  # a second to load: only who draws waits for it
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    drawn: list[Html] = []
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        figure.patch.set_visible(False)
        yield figure, figure.add_subplot(), drawn
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        FigureCanvasSVG(figure).print_svg(file, metadata=nothing)  # type: ignore[no-untyped-call]
    drawn.append(_inline(file.getvalue(), label))


def as_file(drawing: Html) -> str:
    """Return a drawing as a file of its own, for pages that show it as a picture, on light and dark grounds."""
    style = f"<style>{COLOURS} svg {{ background: var(--ground); font-family: sans-serif; }}</style>"
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head, _, body = drawing.partition(">")
    return f"{head.replace('<svg', f'<svg {names}', 1)}>{style}{body}\n"


def thin(points: Points, most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """Average neighbours until few enough points are left to be seen apart."""
    size = -(-len(points) // most)
    if size <= 1:
        return list(points)
    parts = [points[first : first + size] for first in range(0, len(points), size)]
    return [(sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for part in parts]


def _dress(axes: Axes, *, unit: str, from_zero: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.patch.set_visible(False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.8)
    axes.tick_params(length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=ROUND, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    _scale_values(axes.yaxis, unit)
    axes.set_xlabel("step", color=FAINT)
    if from_zero:
        axes.set_ylim(bottom=0)


def _scale_values(axis: Axis, unit: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    scale, sign = (100, "%") if unit == "percent" else (1, "")
    axis.set_major_locator(MaxNLocator(5, steps=ROUND))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{scale * value:,.6g}{sign}"))


def _inline(svg: str, label: str) -> Html:
    """Take the svg element alone, with the page's colours and font, and names of its own for what it refers to."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img" aria-label="@">', svg, count=1)
    svg = re.sub(r"<style.*?</style>", "", svg, count=1, flags=re.DOTALL)  # it would hold for the whole page
    svg = re.sub(r" font-family: [^;]*;|(?<=<g) id=\"[^\"]*\"|(?<=>)\s+(?=<)", "", svg)
    for told, shown in (INKS | HUES).items():
        svg = svg.replace(told, shown)
    name = re.sub(r"\W+", "-", label.lower())
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return Html(svg.replace('aria-label="@"', f'aria-label="{html.escape(label)}"', 1))
