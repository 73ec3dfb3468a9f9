"""The report of a folder of studies: HTML in one file, and Markdown with small pictures beside it.

Each table stands beside the paper's numbers, with its spread over seeds, its cost and its verdicts. Both forms are made
of the same cells. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from albert.files import atomic_write, write_json
from albert.report import page
from albert.report.drawing import Curve, as_file, draw_curves
from albert.report.page import Html
from albert.study.results import Table
from albert.study.tables import Column, column
from albert.study.verdicts import CONFIDENCE, FEWEST_SEEDS, Interval, Verdict, has_diverged
from albert.train.history import is_run, read_history

RULE = (
    "The rule, stated before the runs: of the differences between two rows, seed by seed, the mean and its "
    f"{CONFIDENCE:.0%} t-interval. “agrees”: all of the interval lies on the side that the paper states (or within the "
    "margin, where the paper sees no difference); “disagrees”: all of it lies on the other; else “no verdict”. Fewer "
    f"than {FEWEST_SEEDS} seeds are never a verdict, nor is a comparison of which a run has diverged. All rows are "
    "scored on the same held-out examples; where an accuracy is compared with a fixed number, their binomial deviation "
    "is added. Each is a bet at 20 to 1: of many, some are wrong by chance."
)


@dataclass(frozen=True)
class Cells:
    """A table of text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A drawing with its caption and the name of its file."""

    name: str
    caption: str
    drawing: Html


def write_report(tables: Sequence[Table], out: Path) -> Path:
    """Write report.html, report.md with figures/, and results.json; return the page."""
    pictures = {table.study.name: _pictures(table, out) for table in tables}
    _write(out / "report.html", _html(tables, pictures))
    _write(out / "report.md", _markdown(tables, pictures))
    for picture in (picture for several in pictures.values() for picture in several):
        _write(out / "figures" / f"{picture.name}.svg", as_file(picture.drawing))
    write_json(out / "results.json", {table.study.name: to_json(table) for table in tables})
    return out / "report.html"


def to_json(table: Table) -> dict[str, object]:
    """Return scores and verdicts as JSON."""
    return {
        "question": table.study.question,
        "source": table.study.source,
        "scale": table.scale,
        "tokens": table.tokens,
        "command": table.command,
        "rows": {
            row.name: {"paper": dict(row.paper), "seeds": {str(seed): dict(one) for seed, one in seeds.items()}}
            for row in table.study.rows
            for seeds in (table.scores.get(row.name, {}),)
        },
        "verdicts": [
            {
                "finding": verdict.finding.text,
                "says": verdict.finding.says,
                "column": verdict.column,
                "verdict": verdict.answer,
                "difference": vars(verdict.difference) if _is_known(verdict.difference) else None,
                "sure": verdict.sure,
            }
            for verdict in table.verdicts
        ],
    }


def _is_known(found: Interval | None) -> bool:
    return found is not None and found.seeds > 1


def score_cells(table: Table) -> Cells:
    """Return the rows: mean and spread over seeds of every column, then what the paper prints."""
    study = table.study
    names = [*study.columns, *table.tasks]
    printed = list(dict.fromkeys(name for row in study.rows for name in row.paper))
    rows = []
    for row in study.rows:
        seeds = table.scores.get(row.name, {})
        problems = sum(map(has_diverged, seeds.values()))
        done = f"{len(seeds)}" + (f" ({problems} diverged)" if problems else "")
        cells = [_spread([one[name] for one in seeds.values() if one.get(name) is not None], name) for name in names]
        rows.append((row.name, done, *cells, *(row.paper.get(name, "–") for name in printed)))
    heads = [column(name).title for name in names]
    return Cells(("", "seeds", *heads, *(f"paper: {name}" for name in printed)), tuple(rows))


def verdict_cells(verdicts: Sequence[Verdict]) -> Cells:
    """Return a line for each finding on each column."""
    rows = tuple(
        (
            verdict.finding.text,
            f"{column(verdict.column).title} {verdict.finding.says}",
            _difference(verdict),
            verdict.answer,
            verdict.sure,
        )
        for verdict in verdicts
    )
    return Cells(("finding", "the paper says", "difference here", "verdict", "how sure"), rows)


def _difference(verdict: Verdict) -> str:
    if (found := verdict.difference) is None:
        return "–"
    kind = column(verdict.column)
    ends = f" [{_signed(found.low, kind)}, {_signed(found.high, kind)}]" if _is_known(found) else ""
    return _signed(found.mean, kind) + ends


def _signed(value: float, kind: Column) -> str:
    return ("+" if value >= 0 else "−") + _number(abs(value), kind)


def _number(value: float, kind: Column) -> str:
    match kind.form:
        case "percent":
            return f"{100 * value:.1f}"
        case "loss":
            return f"{value:.3f}"
        case "count":
            return f"{value:,.0f}"
        case "number":
            return f"{value:,.3g}"
        case "bytes":
            return f"{value / 1e6:,.1f} MB"


def _spread(values: Sequence[float], name: str) -> str:
    if not values:
        return "–"
    kind = column(name)
    if len(values) == 1 or len(set(values)) == 1:
        return _number(mean(values), kind)
    return f"{_number(mean(values), kind)} ± {_number(stdev(values), kind)}"


def _pictures(table: Table, out: Path) -> list[Picture]:
    study, found = table.study, []
    if study.curves:
        curves = [Curve(row.name, _mean_curve(table, row.name, out), markers=True) for row in study.rows]
        if all(curve.points for curve in curves):
            title = f"{study.source}: {study.curves.removeprefix('valid_').replace('_', ' ')} on held-out text"
            unit = "percent" if "accuracy" in study.curves else "plain"
            found.append(Picture(study.name, title, draw_curves(curves, label=title, unit=unit)))  # type: ignore[arg-type]
    if study.layers:
        for name, title in (("distances", "L2 distance"), ("angles", "Angle in degrees")):
            curves = [Curve(row.name, _mean_layers(table, row.name, name), markers=True) for row in study.rows]
            caption = f"Figure 1: {title} between the input and the output of each layer"
            if all(curve.points for curve in curves):
                drawing = draw_curves(curves, label=caption, from_zero=True, across="layer")
                found.append(Picture(f"{study.name}-{name}", caption, drawing))
    return found


def _mean_curve(table: Table, row: str, out: Path) -> list[tuple[float, float]]:
    assert table.study.curves is not None
    whole = {seed for seed, scores in table.scores.get(row, {}).items() if "problem" not in scores}
    keys = [key for seed, key in table.keys.get(row, {}).items() if seed in whole]
    folders = [out / "rows" / key / "pretrain" for key in keys]
    series = [read_history(folder).series(table.study.curves) for folder in folders if is_run(folder)]
    return [(points[0][0], mean(value for _, value in points)) for points in zip(*series, strict=False)]


def _mean_layers(table: Table, row: str, name: str) -> list[tuple[float, float]]:
    several = [one[name] for one in table.scores.get(row, {}).values() if name in one]
    return [(layer + 1, mean(values)) for layer, values in enumerate(zip(*several, strict=True))]


def _heading(table: Table) -> str:
    return f"{table.study.name} ({table.study.source})"


def _budget(table: Table) -> str:
    given = "the same tokens" if table.study.equal == "tokens" else "the same time as the first row"
    minutes = sum(one.get("minutes", 0.0) for seeds in table.scores.values() for one in seeds.values())
    return (
        f"Scale {table.scale}; every row has {given}; a run of the first row reads {table.tokens:,} tokens at most. "
        f"Pre-training took {minutes:,.1f} minutes in all."
    )


def _counts(tables: Sequence[Table]) -> str:
    answers = [verdict.answer for table in tables for verdict in table.verdicts]
    counted = ", ".join(f"{answers.count(name)} {name}" for name in ("agrees", "disagrees", "no verdict"))
    return f"Findings by column: {counted}."


def _html(tables: Sequence[Table], pictures: dict[str, list[Picture]]) -> str:
    sections = []
    for table in tables:
        scores, verdicts = score_cells(table), verdict_cells(table.verdicts)
        drawn = [page.figure(picture.caption, picture.drawing) for picture in pictures[table.study.name]]
        sections.append(
            page.section(
                _heading(table),
                page.paragraph(table.study.question),
                page.command(table.command),
                page.note(_budget(table)),
                page.table(scores.head, scores.rows),
                *([page.figures(*drawn)] if drawn else []),
                page.table(verdicts.head, verdicts.rows),
            )
        )
    title = "The paper's experiments, at the size of this machine"
    return page.page(title, page.paragraph(_counts(tables)), page.note(RULE), *sections)


def _markdown(tables: Sequence[Table], pictures: dict[str, list[Picture]]) -> str:
    parts = ["# The paper's experiments, at the size of this machine", _counts(tables), RULE]
    for table in tables:
        parts += [f"## {_heading(table)}", table.study.question, f"```bash\n{table.command}\n```", _budget(table)]
        parts.append(_markdown_table(score_cells(table)))
        parts += [f"![{one.caption}](figures/{one.name}.svg)" for one in pictures[table.study.name]]
        if table.verdicts:
            parts.append(_markdown_table(verdict_cells(table.verdicts)))
    return "\n\n".join(parts) + "\n"


def _markdown_table(cells: Cells) -> str:
    rows = [cells.head, ("---",) * len(cells.head), *cells.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
