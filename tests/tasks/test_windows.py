"""Windows: every token is somewhere, counts once, and leads back to its characters; answers are found again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert.tasks.windows import Passage, Sizes, Span, best_context, cut_windows, even_spans, window_spans
from albert.tokenizer import Tokenizer

SIZES = Sizes(max_length=384, max_question=64, stride=128, max_answer=30)


class Marks:
    """What cutting windows needs of a tokenizer."""

    cls_id, sep_id = 2, 3


def passage_of(length: int, *, bare: frozenset[int] = frozenset()) -> Passage:
    """Make a passage whose token i covers characters 3i to 3i+2; the bare ones cover none."""
    offsets = [(3 * i, 3 * i if i in bare else 3 * i + 2) for i in range(length)]
    return Passage(range(100, 100 + length), np.array(offsets, dtype=np.int32).reshape(-1, 2))


lengths = st.integers(0, 400)
rooms = st.integers(1, 90)
strides = st.integers(1, 60)


@settings(deadline=None)
@given(lengths, rooms, strides, st.integers(1, 30))
def test_windows_cover_every_token_and_no_window_is_needless(length: int, room: int, stride: int, overlap: int) -> None:
    spans = window_spans(length, room=room, stride=stride, overlap=overlap)
    assert spans[0].start == 0
    assert spans[-1].end == length
    assert {token for span in spans for token in range(*span)} == set(range(length))
    assert all(span.end - span.start <= room for span in spans)
    assert all(span.end < length for span in spans[:-1])


@settings(deadline=None)
@given(st.integers(60, 400), st.integers(60, 120), st.integers(1, 128))
def test_every_answer_of_30_tokens_lies_whole_in_a_window(length: int, room: int, stride: int) -> None:
    spans = window_spans(length, room=room, stride=stride, overlap=30)
    for start in range(length - 29):
        assert any(span.start <= start and start + 30 <= span.end for span in spans)


@settings(deadline=None)
@given(lengths, rooms, strides)
def test_every_token_counts_in_one_window_which_is_that_of_most_context(length: int, room: int, stride: int) -> None:
    spans = window_spans(length, room=room, stride=stride, overlap=10)
    counts = best_context(spans)
    for token in range(length):
        holding = [number for number, span in enumerate(spans) if span.start <= token < span.end]
        context = [
            min(token - spans[i].start, spans[i].end - 1 - token) + 0.01 * (spans[i].end - spans[i].start)
            for i in holding
        ]
        chosen = [number for number in holding if counts[number][token - spans[number].start]]
        assert chosen == [holding[context.index(max(context))]]


@settings(deadline=None)
@given(lengths, st.integers(0, 80), st.integers(16, 200), st.data())
def test_positions_of_an_answer_lead_back_to_its_characters(
    length: int, question: int, max_length: int, data: st.DataObject
) -> None:
    bare = data.draw(st.frozensets(st.integers(0, 400), max_size=5))
    passage = passage_of(length, bare=bare)
    solid = [token for token in range(length) if token not in bare]
    answer = Span(0, 0)
    if solid:
        first = data.draw(st.sampled_from(solid))
        last = data.draw(st.sampled_from([token for token in solid if first <= token < first + 8]))
        answer = passage.tokens_of(Span(3 * first, 3 * last + 2))
        assert answer == (first, last + 1)
    sizes = Sizes(max_length=max_length, max_question=64, stride=128, max_answer=30)
    windows = cut_windows(range(50, 50 + question), passage, tokenizer=Marks(), sizes=sizes, answer=answer)  # type: ignore[arg-type]
    for window in windows:
        assert len(window.token_ids) == len(window.segment_ids) <= max_length
        assert window.token_ids[0] == 2
        assert window.token_ids[window.first - 1] == window.token_ids[-1] == 3
        assert list(window.segment_ids) == [0] * window.first + [1] * (len(window.token_ids) - window.first)
        own = window.token_ids[window.first : -1]
        assert [3 * (token - 100) for token in own] == window.offsets[:, 0].tolist()
        assert window.allowed[0]
        assert not window.allowed[1 : window.first].any()
        assert not window.allowed[-1]
        assert window.target is not None
        if not window.impossible:
            start, end = (position - window.first for position in window.target)
            assert window.characters(start, end) == (3 * answer.start, 3 * answer.end - 1)
            assert window.allowed[list(window.target)].all()
    holds = [answer.end > 0 and own_start <= answer.start and answer.end <= own_end
             for own_start, own_end in ((w.token_ids[w.first] - 100, w.token_ids[-2] - 99) if len(w.offsets) else (0, 0)
                                        for w in windows)]  # fmt: skip
    assert [not window.impossible for window in windows] == holds


def test_windows_of_one_token_go_on_one_by_one() -> None:
    assert window_spans(3, room=1, stride=0, overlap=0) == [Span(0, 1), Span(1, 2), Span(2, 3)]


def test_google_sizes_are_cut_as_google_cuts() -> None:
    # 500 passage tokens, 20 of a question: 361 fit; then 128 further.
    spans = window_spans(500, room=361, stride=128, overlap=30)
    assert spans == [(0, 361), (128, 489), (256, 500)]
    counts = best_context(spans)
    # Token 300: sides 60 and 172 of context on the poorer side, then 44.
    assert [int(own[300 - span.start]) for own, span in zip(counts, spans, strict=True)] == [0, 1, 0]


def test_a_long_question_is_cut_and_an_empty_passage_is_one_window() -> None:
    windows = cut_windows(range(50, 250), passage_of(0), tokenizer=Marks(), sizes=SIZES, answer=None)  # type: ignore[arg-type]
    assert len(windows) == 1
    assert list(windows[0].token_ids) == [2, *range(50, 114), 3, 3]
    assert windows[0].target is None
    assert not windows[0].impossible


@pytest.mark.parametrize(
    ("name", "answers", "exact"),
    [("dev-v1.1.json", 34726, 34619), ("dev-half-v2.0.json", 10052, 10029), ("train-subset-v1.1.json", 11877, 11752)],
)
def test_tokens_give_back_real_answers_unless_they_begin_or_end_inside_a_piece(
    real_data: Path, name: str, answers: int, exact: int
) -> None:
    tokenizer = Tokenizer.load(real_data / "vocab" / "spiece.model")
    seen = same = 0
    for article in json.loads((real_data / "squad" / name).read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            passage = Passage.read(text, tokenizer)
            own = {(a["answer_start"], a["text"]): 0 for q in paragraph["qas"] for a in q["answers"]}
            for question in paragraph["qas"]:
                for answer in question["answers"]:
                    own[answer["answer_start"], answer["text"]] += 1
            for (start, answer_text), times in own.items():
                tokens = passage.tokens_of(Span(start, start + len(answer_text)))
                begin, end = int(passage.offsets[tokens.start, 0]), int(passage.offsets[tokens.end - 1, 1])
                seen += times
                if text[begin:end] == answer_text:
                    same += times
                else:  # nothing is lost: the tokens hold the answer and a little more of its first or last word
                    assert begin <= start
                    assert end >= start + len(answer_text.rstrip())
                    assert answer_text.strip() in text[begin:end]
                    assert not any(c.isspace() for c in text[begin:start] + text[start + len(answer_text) : end])
    assert (seen, same) == (answers, exact)


@pytest.mark.parametrize(("length", "room"), [(0, 5), (1, 5), (5, 5), (6, 5), (130, 126), (1_000, 126)])
def test_even_windows_cover_all_in_order_and_differ_by_a_token(length: int, room: int) -> None:
    spans = even_spans(length, room=room)
    assert [token for span in spans for token in range(*span)] == list(range(length))
    sizes = [end - start for start, end in spans]
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= 1
    assert len(spans) == max(1, -(-length // room))
