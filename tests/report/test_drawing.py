"""Curves as inline SVG: right on any ground, small, the same every time."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from albert.report.drawing import MOST_POINTS, Curve, draw_curves, thin
from albert.report.page import STYLE

LINE = Curve("training", [(step, 9.0 - step / 100) for step in range(0, 500, 10)])
MARKS = Curve("held-out", [(100, 8.5), (300, 7.0)], markers=True)


def parse(svg: str) -> ElementTree.Element:
    """Read a drawing as XML; inside a page HTML knows the one prefix that it uses."""
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns:xlink="x" ', 1))


def test_a_drawing_is_one_svg_element_whose_text_is_text() -> None:
    root = parse(draw_curves([LINE, MARKS], label="Loss & more"))
    assert root.tag == "svg"
    assert root.attrib["aria-label"] == "Loss & more"
    words = {element.text for element in root.iter("text")}
    assert {"step", "training", "held-out", "400"} <= words


def test_every_colour_is_a_variable_of_the_page() -> None:
    svg = draw_curves([LINE, MARKS, Curve("third", [(0, 1.0), (10, 2.0)])], label="Loss")
    assert not re.findall(r"#[0-9a-f]{6}\b", svg)
    used = set(re.findall(r"var\((--\w+)\)", svg))
    assert {"--first", "--second", "--third", "--faint", "--line"} <= used
    assert all(f"{name}:" in STYLE for name in used)


def test_drawings_of_one_page_share_no_names() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', draw_curves([MARKS], label=label))) for label in ("Loss", "Learning rate")]
    assert ids[0]
    assert not ids[0] & ids[1]
    svg = draw_curves([MARKS], label="Loss")
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)), "markers and clips are referred to"
    for one, other in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg):
        assert (one or other) in ids[0]


def test_the_same_curves_give_the_same_bytes() -> None:
    assert draw_curves([LINE, MARKS], label="Loss") == draw_curves([LINE, MARKS], label="Loss")


def test_one_point_is_seen() -> None:
    assert "<use" in draw_curves([Curve("held-out", [(5, 1.0)])], label="Loss")


def test_percent_and_zero() -> None:
    svg = draw_curves([Curve("accuracy", [(0, 0.2), (10, 0.4)])], label="Accuracy", unit="percent", from_zero=True)
    words = [element.text for element in parse(svg).iter("text")]
    assert "0%" in words
    assert "40%" in words


def test_a_long_run_makes_no_large_drawing() -> None:
    noisy = [(float(step), float(step * 7919 % 101)) for step in range(100_000)]
    points = thin(noisy)
    assert MOST_POINTS / 2 < len(points) <= MOST_POINTS
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert sum(y for _, y in points) / len(points) == pytest.approx(50.0, abs=0.5)
    assert len(draw_curves([Curve("noise", noisy)], label="Noise")) < 40_000


def test_few_points_are_kept_as_they_are() -> None:
    assert thin([(1, 2.0), (3, 4.0)]) == [(1, 2.0), (3, 4.0)]
    assert thin([]) == []


def test_drawing_leaves_matplotlib_as_it_was_and_loads_it_late() -> None:
    code = (
        "import sys; from albert.report.drawing import Curve, draw_curves\n"
        "assert 'matplotlib' not in sys.modules\n"
        "def draw(): draw_curves([Curve('a', [(0, 1.0), (1, 2.0)])], label='A')\n"
        "draw(); assert 'matplotlib.pyplot' not in sys.modules\n"
        "import matplotlib; before = dict(matplotlib.rcParams); draw(); assert dict(matplotlib.rcParams) == before\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
