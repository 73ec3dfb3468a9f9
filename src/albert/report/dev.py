"""What the decisions about dev examples show: where a model is right, how sure it is, and where it is wrong.

What is shown each kind of task says in plain values (tasks/dev_view.py); here it is drawn. All have a score by length,
the mistakes that the model was surest of and, where it gives probabilities, a check whether they can be believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from albert.report import page
from albert.report.arithmetic import calibrate, class_scores, in_bins
from albert.report.decisions import Decided
from albert.report.drawing import draw_pairs
from albert.report.page import Html
from albert.tasks.decision import Decision
from albert.tasks.dev_view import Binned, ByClass, Confusion, DevView, Figure, Parts, Remark, Scatter
from albert.tasks.saved_task import KINDS

MATRIX_LABELS = 20
MOST_CASES = 20
MOST_CLASSES = 100


def dev_sections(decided: Decided) -> Iterator[Html]:
    """Return the sections on the decisions."""
    if not decided.decisions:
        return
    task = KINDS.get(decided.kind)
    view = (task.view if task else DevView)(decided.labels, decided.decisions)
    if figures := [part for figure in view.figures() for part in _draw(view, figure)]:
        yield page.section(view.title, *figures)
    yield page.section("By length", _binned(view, Binned(view.length_name, view.decisions, lambda one: one.length)))
    yield from _calibration(view)
    yield page.section(view.mistakes_title, *_mistakes(view))


def _draw(view: DevView, figure: Figure) -> Iterator[Html]:
    match figure:
        case Confusion():
            yield from _confusion(figure)
        case ByClass():
            yield _classes(figure)
        case Scatter():
            title = "True and guessed numbers"
            yield page.figures(page.figure(title, draw_pairs(figure.points, label=title, across="is", up="said")))
        case Parts():
            yield _score_table(view, figure.what, figure.parts)
        case Binned():
            yield _binned(view, figure)
        case Remark():
            yield page.note(figure.text)


def _confusion(figure: Confusion) -> Iterator[Html]:
    """Show how often each class was taken for each; of many classes, the pairs that are confused most."""
    names, pairs = figure.names, Counter(figure.pairs)
    if len(names) <= MATRIX_LABELS:
        yield page.matrix(names, [[pairs[true, said] for said in names] for true in names])
        return
    wrong = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]]
    yield page.table(("is", "said", "times"), [(*pair, f"{count:,}") for pair, count in wrong[:MATRIX_LABELS]])
    yield page.note(f"{len(names)} classes are too many for a matrix: these are confused most.")


def _classes(figure: ByClass) -> Html:
    scores = class_scores(figure.labels, figure.truth, figure.guesses)
    shown = sorted(scores, key=lambda score: -score.real)[:MOST_CLASSES]
    rows = [
        (one.label, f"{one.real:,}", f"{one.said:,}", f"{one.precision:.1%}", f"{one.recall:.1%}", f"{one.f1:.1%}")
        for one in shown
    ]
    return page.table((figure.what, "there are", "said", "precision", "recall", "F1"), rows)


def _binned(view: DevView, figure: Binned) -> Html:
    parts = [
        (f"{low:,.4g}" if low == high else f"{low:,.4g} to {high:,.4g}", own)
        for low, high, own in in_bins(figure.decisions, figure.measure)
    ]
    return _score_table(view, figure.what, parts)


def _score_table(view: DevView, what: str, parts: Sequence[tuple[str, Sequence[Decision]]]) -> Html:
    """Return the scores of parts, in the way of the task."""
    scores = view.scores()
    rows = [(name, f"{len(own):,}", *(score(own) for score in scores.values())) for name, own in parts]
    return page.table((what, "examples", *scores), rows)


def _calibration(view: DevView) -> Iterator[Html]:
    found = calibrate(trial for one in view.decisions for trial in view.trials(one))
    if found is None:
        return
    title = "Probability and truth"
    points = [(one.claimed, one.came_true) for one in found.bins]
    drawing = draw_pairs(points, label=title, across="said to be probable", up="came true", unit="percent", joined=True)
    rows = [(f"{one.claimed:.1%}", f"{one.came_true:.1%}", f"{one.count:,}") for one in found.bins]
    yield page.section(
        "Calibration",
        page.paragraph(f"Expected calibration error: {found.error:.3f}."),
        page.figures(page.figure(title, drawing)),
        page.table(("said to be probable", "came true", "decisions"), rows),
        page.note(f"{view.probability_note} Below the line a model is too sure, above it not sure enough."),
    )


def _mistakes(view: DevView) -> Iterator[Html]:
    found = [(*case, one) for one in view.decisions if (case := view.mistake(one)) is not None]
    found.sort(key=lambda case: -case[0])
    if not found:
        yield page.paragraph("None.")
        return
    for _, remark, one in found[:MOST_CASES]:
        yield page.case(remark, f"{one.text}\n{one.place}" if one.place else one.text)
    if len(found) > MOST_CASES:
        yield page.note(f"{MOST_CASES} of {len(found):,} examples that are not quite right.")
