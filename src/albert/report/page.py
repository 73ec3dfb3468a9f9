"""The building blocks of a report: page, section, table, figure, list of facts.

A page is one file that loads nothing from anywhere (its own policy forbids it), follows the reader's light or dark
setting and fits a phone. Text is escaped where it enters: only these blocks make `Html`, and mypy keeps the two apart.
Knows nothing of runs or models.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import NewType

Html = NewType("Html", str)

# Colours are variables, so that a figure drawn once is right on both grounds. The hues are Okabe and Ito's, which
# colour-blind readers can tell apart, made darker or lighter to stand out from the ground.
COLOURS = """
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c1e21; --faint: #6b7280; --line: #d9dce1;
  --shade: #f5f6f8; --first: #0068a8; --second: #c2500a; --third: #007a5a; }
@media (prefers-color-scheme: dark) { :root { --ground: #15171a; --ink: #e4e6ea; --faint: #9aa1ac;
  --line: #363b43; --shade: #1e2126; --first: #56b4e9; --second: #f0a04b; --third: #2fc79a; } }
"""
STYLE = (
    COLOURS
    + """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
p { margin: .5rem 0; }
.note { color: var(--faint); }
.wide { overflow-x: auto; }
section > * + .wide, .figures + .wide { margin-top: .75rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .75rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--faint); font-weight: 600; }
tbody th { font-weight: normal; }
.matrix td { min-width: 3.5rem; background: color-mix(in srgb, var(--first) calc(var(--share) * .6), transparent); }
.case { margin: .75rem 0; padding: .5rem .75rem; background: var(--shade); border-radius: .5rem; }
.case p { margin: 0; overflow-wrap: anywhere; white-space: pre-line; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem; }
figure { max-width: 30rem; margin: 0; padding: .5rem; background: var(--shade); border-radius: .5rem; }
figure svg { display: block; width: 100%; height: auto; stroke-linejoin: round; }
figcaption { font-weight: 600; padding: .25rem .25rem 0; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: var(--faint); overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; }
dd, .command { font-family: ui-monospace, monospace; font-size: .9rem; }
.command { background: var(--shade); padding: .5rem .75rem; border-radius: .5rem; overflow-wrap: anywhere; }
"""
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(title: str, *parts: Html) -> Html:
    """Make the whole file."""
    return Html(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{_text(title)}</h1>\n{_joined(parts)}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: Html) -> Html:
    """Put parts under a heading."""
    return Html(f"<section>\n<h2>{_text(title)}</h2>\n{_joined(parts)}\n</section>")


def paragraph(text: str) -> Html:
    """Write a paragraph."""
    return Html(f"<p>{_text(text)}</p>")


def note(text: str) -> Html:
    """Write a paragraph that explains and may be passed over."""
    return Html(f'<p class="note">{_text(text)}</p>')


def command(text: str) -> Html:
    """Show a command line."""
    return Html(f'<p class="command">{_text(text)}</p>')


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """Lay out rows under a head; the first column names the row."""
    assert all(len(row) == len(head) for row in rows), "every row has a cell for every column"
    heads = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    body = "\n".join(
        f'<tr><th scope="row">{_text(first)}</th>{"".join(f"<td>{_text(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return Html(
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'
    )


def matrix(names: Sequence[str], rows: Sequence[Sequence[int]]) -> Html:
    """Lay out how often each row's name met each column's, shaded by its share of the row."""
    heads = "".join(f'<th scope="col">{_text(name)}</th>' for name in names)
    body = "\n".join(
        f'<tr><th scope="row">{_text(name)}</th>'
        + "".join(f'<td style="--share: {100 * cell / max(1, sum(row)):.0f}%">{cell:,}</td>' for cell in row)
        + "</tr>"
        for name, row in zip(names, rows, strict=True)
    )
    return Html(
        f'<div class="wide"><table class="matrix">\n<thead><tr><th scope="col">is \\ said</th>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def case(remark: str, text: str) -> Html:
    """Show one text, with what is to be said of it above."""
    return Html(f'<div class="case"><p><strong>{_text(remark)}</strong></p>\n<p>{_text(text)}</p></div>')


def facts(values: Mapping[str, str]) -> Html:
    """List names and values."""
    items = "\n".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in values.items())
    return Html(f"<dl>\n{items}\n</dl>")


def figure(caption: str, drawing: Html) -> Html:
    """Put a caption over a drawing (albert.report.drawing)."""
    return Html(f"<figure>\n<figcaption>{_text(caption)}</figcaption>\n{drawing}\n</figure>")


def figures(*parts: Html) -> Html:
    """Set figures side by side where there is room."""
    return Html(f'<div class="figures">\n{_joined(parts)}\n</div>')


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def _joined(parts: Sequence[Html]) -> str:
    return "\n".join(parts)
