"""What the decisions about dev examples show, for every kind of task: where a model is right, how sure, and where not.

Classes have a confusion matrix and scores each; numbers a scatter; answers, choices and tags what tells theirs apart.
All have a score by length, the mistakes that the model was surest of and, where it gives probabilities, a check
whether they can be believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from albert.report import page
from albert.report.arithmetic import ClassScore, calibrate, class_scores, in_bins
from albert.report.decisions import Decided, Decision, shorten
from albert.report.drawing import draw_pairs
from albert.report.page import Html
from albert.tasks.tag_spans import has_spans, span_scores, spans_of

MATRIX_LABELS = 20
MOST_CASES = 20
MOST_CLASSES = 100

Measure = Callable[[Decision], float]


def dev_sections(decided: Decided) -> Iterator[Html]:
    """Give the sections on the decisions."""
    some = decided.decisions
    if not some:
        return
    match decided.kind:
        case "classification":
            yield page.section("Classes", *_confusion(decided.labels, some), _classes(decided.labels, some))
        case "multi-label":
            yield page.section("Labels", _classes(decided.labels, some))
        case "regression":
            yield page.section("Numbers", *_numbers(some))
        case "choice":
            yield page.section("Choices", *_choices(some))
        case "span":
            yield page.section("Answers", *_answers(some))
        case "tagging":
            yield page.section("Tags", _tags(decided.labels, some))
    yield page.section("By length", _by_length(decided.kind, some))
    yield from _calibration(decided)
    yield page.section("Largest errors" if decided.kind == "regression" else "Surest mistakes", *_mistakes(decided))


def _confusion(labels: Sequence[str], some: Sequence[Decision]) -> Iterator[Html]:
    """Show how often each class was taken for each; of many classes, the pairs that are confused most."""
    pairs = Counter((one.truth[0], one.guess[0]) for one in some)
    if len(labels) <= MATRIX_LABELS:
        yield page.matrix(labels, [[pairs[true, said] for said in labels] for true in labels])
        return
    wrong = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]]
    yield page.table(("is", "said", "times"), [(*pair, f"{count:,}") for pair, count in wrong[:MATRIX_LABELS]])
    yield page.note(f"{len(labels)} classes are too many for a matrix: these are confused most.")


def _classes(labels: Sequence[str], some: Sequence[Decision]) -> Html:
    scores = class_scores(labels, [one.truth for one in some], [one.guess for one in some])
    return _class_table("class", scores)


def _class_table(what: str, scores: Sequence[ClassScore]) -> Html:
    shown = sorted(scores, key=lambda score: -score.real)[:MOST_CLASSES]
    rows = [
        (one.label, f"{one.real:,}", f"{one.said:,}", f"{one.precision:.1%}", f"{one.recall:.1%}", f"{one.f1:.1%}")
        for one in shown
    ]
    return page.table((what, "there are", "said", "precision", "recall", "F1"), rows)


def _numbers(some: Sequence[Decision]) -> Iterator[Html]:
    points = [one.values for one in some if one.values is not None]
    title = "True and guessed numbers"
    yield page.figures(page.figure(title, draw_pairs(points, label=title, across="is", up="said")))
    yield _binned("true number", some, lambda one: one.values[0] if one.values else 0.0, kind="regression")


def _choices(some: Sequence[Decision]) -> Iterator[Html]:
    """Show whether places are preferred, and the parts of the data."""
    places = [(one.truth[0].partition(":")[0], one.guess[0].partition(":")[0]) for one in some]
    names = sorted({place for pair in places for place in pair}, key=int)
    counts = Counter(places)
    yield page.matrix(names, [[counts[true, said] for said in names] for true in names])
    yield page.note("By the place of the choice: a model that prefers one has not understood the others.")
    yield from _groups("choice", some)


def _answers(some: Sequence[Decision]) -> Iterator[Html]:
    yield from _groups("span", some)
    yield _binned("words of the question", some, lambda one: one.asked, kind="span")
    answered = [one for one in some if one.truth]
    if answered:
        yield _binned("words of the answer", answered, lambda one: min(len(t.split()) for t in one.truth), kind="span")


def _tags(labels: Sequence[str], some: Sequence[Decision]) -> Html:
    """Show the F1 of each type of span; of tags without spans, of each tag."""
    if not has_spans(labels):
        words = [(true, said) for one in some for true, said in zip(one.truth, one.guess, strict=True)]
        return _class_table("tag", class_scores(labels, [(true,) for true, _ in words], [(said,) for _, said in words]))
    true_types: list[set[str]] = []  # of every span that is there or was said
    said_types: list[set[str]] = []
    for one in some:
        real, said = (
            {(span.first, span.last): span.type for span in spans_of(tags)} for tags in (one.truth, one.guess)
        )
        for place in real.keys() | said.keys():
            true_types.append({real[place]} if place in real else set())
            said_types.append({said[place]} if place in said else set())
    kinds = sorted(set().union(*true_types, *said_types))
    return _class_table("type", class_scores(kinds, true_types, said_types))


def _groups(kind: str, some: Sequence[Decision]) -> Iterator[Html]:
    names = sorted({one.group for one in some})
    if len(names) > 1:
        parts = [(name or "others", [one for one in some if one.group == name]) for name in names]
        yield _score_table("part", parts, kind=kind)


def _by_length(kind: str, some: Sequence[Decision]) -> Html:
    return _binned("words of the passage" if kind == "span" else "words", some, lambda one: one.length, kind=kind)


def _binned(what: str, some: Sequence[Decision], measure: Measure, *, kind: str) -> Html:
    parts = [
        (f"{low:,.4g}" if low == high else f"{low:,.4g} to {high:,.4g}", own)
        for low, high, own in in_bins(some, measure)
    ]
    return _score_table(what, parts, kind=kind)


def _score_table(what: str, parts: Sequence[tuple[str, Sequence[Decision]]], *, kind: str) -> Html:
    """Give the scores of parts, in the way of the task."""
    scores: dict[str, Callable[[Sequence[Decision]], str]]
    match kind:
        case "regression":
            scores = {"mean error": lambda own: f"{_mean([one.score for one in own]):.3f}"}
        case "span":
            scores = {
                "exact": lambda own: f"{_mean([one.exact or 0.0 for one in own]):.1%}",
                "F1": lambda own: f"{_mean([one.score for one in own]):.1%}",
            }
        case "tagging":
            scores = {
                "words right": lambda own: (
                    f"{sum(one.score * one.length for one in own) / max(1, sum(one.length for one in own)):.1%}"
                )
            }
            if any(has_spans(set(one.truth)) for _, own in parts for one in own):
                scores["span F1"] = lambda own: (
                    f"{span_scores([o.truth for o in own], [o.guess for o in own])['f1']:.1%}"
                )
        case "multi-label":
            scores = {"all labels right": lambda own: f"{_mean([one.score for one in own]):.1%}"}
        case _:
            scores = {"right": lambda own: f"{_mean([one.score for one in own]):.1%}"}
    rows = [(name, f"{len(own):,}", *(score(own) for score in scores.values())) for name, own in parts]
    return page.table((what, "examples", *scores), rows)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _calibration(decided: Decided) -> Iterator[Html]:
    found = calibrate(trial for one in decided.decisions for trial in _trials(decided, one))
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
        page.note(_meaning(decided.kind)),
    )


def _meaning(kind: str) -> str:
    what = {
        "multi-label": "Every label of every text counts.",
        "span": "An answer comes true if it matches exactly; its probability is that among the candidates.",
        "tagging": "Every word counts.",
    }.get(kind, "The probability is that of the decision.")
    return f"{what} Below the line a model is too sure, above it not sure enough."


def _trials(decided: Decided, one: Decision) -> Iterator[tuple[float, bool]]:
    """Give the probabilities of a decision, and whether they came true."""
    match decided.kind:
        case "multi-label":
            yield from ((p, label in one.truth) for label, p in zip(decided.labels, one.probabilities, strict=True))
        case "span":
            yield from ((p, one.exact == 1.0) for p in one.probabilities)
        case "regression":
            return
        case _:
            yield from zip(one.probabilities, map(str.__eq__, one.truth, one.guess), strict=True)


def _mistakes(decided: Decided) -> Iterator[Html]:
    found = [case for one in decided.decisions if (case := _mistake(decided, one)) is not None]
    found.sort(key=lambda case: -case[0])
    if not found:
        yield page.paragraph("None.")
        return
    for _, remark, one in found[:MOST_CASES]:
        yield page.case(remark, f"{one.text}\n{one.place}" if one.place else one.text)
    if len(found) > MOST_CASES:
        yield page.note(f"{MOST_CASES} of {len(found):,} examples that are not quite right.")


def _mistake(decided: Decided, one: Decision) -> tuple[float, str, Decision] | None:
    """Say what is wrong with a decision, and how much it weighs; None: it is right."""
    match decided.kind:
        case "regression":
            return one.score, f"said {one.guess[0]}, is {one.truth[0]}", one
        case "multi-label":
            wrong = set(one.truth) ^ set(one.guess)
            sure = dict(zip(decided.labels, one.probabilities, strict=True))
            weight = max((sure[label] if label in one.guess else 1 - sure[label] for label in wrong), default=0.0)
            said, true = (", ".join(labels) or "nothing" for labels in (one.guess, one.truth))
            return (weight, f"said {said}, is {true} (as sure as {weight:.1%})", one) if wrong else None
        case "span" if one.score > 0 or one.exact:  # what overlaps is no clear mistake
            return None
        case "tagging":
            words = zip(one.probabilities, one.words, one.guess, one.truth, strict=True)
            wrong_words = [word for word in words if word[2] != word[3]]
            if not wrong_words:
                return None
            p, word, tag, true_tag = max(wrong_words)
            return p, f"“{shorten(word, 60)}”: said {tag} ({p:.1%}), is {true_tag}", one
    if one.score == 1.0:
        return None
    p = one.probabilities[0]
    said, true = shorten(one.guess[0], 200) or "no answer", shorten(" | ".join(dict.fromkeys(one.truth)), 200)
    return p, f"said {said} ({p:.1%}), is {true or 'no answer'}", one
