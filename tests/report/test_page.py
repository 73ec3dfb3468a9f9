"""The building blocks of a report: everything escaped, nothing loaded from anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from albert.report import page
from albert.report.page import Html

HOSTILE = "<script>alert('x')</script> & \"quoted\""


class Outline(HTMLParser):
    """What a browser would see: tags, their attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "make",
    [
        lambda text: page.page(text),
        lambda text: page.section(text),
        lambda text: page.paragraph(text),
        lambda text: page.note(text),
        lambda text: page.command(text),
        lambda text: page.table(["", text], [[text, text]]),
        lambda text: page.facts({text: text}),
        lambda text: page.figure(text, Html("<svg></svg>")),
    ],
)
def test_text_stays_text_in_every_block(make: Callable[[str], Html]) -> None:
    seen = Outline(make(HOSTILE))
    assert "script" not in seen.tags
    assert HOSTILE in seen.text


def test_a_page_forbids_and_names_nothing_from_elsewhere() -> None:
    text = page.page("A page", page.section("One", page.table(["a", "b"], [["1", "2"]])))
    assert "default-src 'none'" in text
    assert "//" not in re.sub(r"<!doctype html>", "", text)
    assert not {"src", "href"} & {name for name, _ in Outline(text).attributes}


def test_a_page_fits_a_phone_and_follows_the_readers_light_or_dark() -> None:
    text = page.page("A page")
    assert 'name="viewport" content="width=device-width' in text
    assert "prefers-color-scheme: dark" in text
    variables = set(re.findall(r"var\((--\w+)\)", text)) - {"--share"}  # a number that each cell of a matrix sets
    light, dark = text.split("prefers-color-scheme: dark")
    for name in variables:
        assert f"{name}: #" in light, f"{name} has no colour on a light ground"
        assert f"{name}: #" in dark, f"{name} has no colour on a dark ground"


def test_a_table_with_a_cell_too_few_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="every row"):
        page.table(["a", "b"], [["1"]])
