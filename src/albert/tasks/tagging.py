"""A tag for every word of a sentence: names, parts of speech.

A word becomes pieces and its first piece carries the tag. A sentence that is too long for one sequence is read in
overlapping windows, each word decided where it has most context, and no word is lost. Tags that say spans (B-PER,
I-PER, O) are scored by the F1 of exact spans and types, as in the CoNLL shared tasks; other tags by accuracy. Knows
nothing of files.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from albert.batch import Said, Wanted, places_of
from albert.errors import UsageError
from albert.model import Albert, Packed
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.model.losses import cross_entropy
from albert.tasks.asking import Texts, column
from albert.tasks.classification import softmax
from albert.tasks.decision import Decision, shorten
from albert.tasks.dev_view import ByClass, DevView, Figure, Scores
from albert.tasks.tag_spans import has_spans, span_scores, spans_of
from albert.tasks.task import Example, Feature, Record, Task, join_segments
from albert.tasks.windows import best_context, window_spans
from albert.tokenizer import Tokenizer

log = logging.getLogger(__name__)

_JOINERS = "\u200c\u200d"  # inside words of Persian and of India's scripts


@dataclass(frozen=True)
class TagExample(Example):
    """The words of a sentence and the number of each one's tag; with its text, the place of each word in it."""

    words: tuple[str, ...]
    target: tuple[int, ...] | None = None
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class TagFeature(Feature):
    """A window of a sentence: the positions of the words that are decided here, and their tags."""

    positions: Sequence[int]
    targets: Sequence[int] | None


@dataclass(frozen=True)
class TaggedWord:
    """A word with its tag; `start` and `end` are characters of the text."""

    text: str
    tag: str
    probability: float
    start: int
    end: int


@dataclass(frozen=True)
class TaggedSpan:
    """Several words that are one thing; its probability is that of its least certain word."""

    text: str
    type: str
    probability: float
    start: int
    end: int


@dataclass(frozen=True)
class Tagged:
    """The decisions for a sentence: its words and, where tags say spans, its spans."""

    words: tuple[TaggedWord, ...]
    spans: tuple[TaggedSpan, ...]


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return what finds words and punctuation; accents and vowel signs, which \\w leaves out, belong to a word."""
    marks = "".join(chr(n) for n in range(0x300, 0x110000) if unicodedata.category(chr(n)).startswith("M"))
    return re.compile(rf"\w[\w{marks}{_JOINERS}]*|[^\w\s]")


def split_words(text: str) -> TagExample:
    """Cut plain text into words and punctuation marks, keeping where they stand."""
    found = list(_word_pattern().finditer(text))
    return TagExample(tuple(word[0] for word in found), text=text, offsets=tuple(word.span() for word in found))


def has_capital(word: str) -> bool:
    """Tell whether a lower-cased vocabulary loses something of a word."""
    return word != word.lower()


class TagView(DevView):
    """The F1 of each type of span; of tags without spans, of each tag."""

    title = "Tags"
    probability_note = "Every word counts."

    def figures(self) -> Iterator[Figure]:
        if not has_spans(self.labels):
            words = [pair for one in self.decisions for pair in zip(one.truth, one.guess, strict=True)]
            yield ByClass("tag", self.labels, [(true,) for true, _ in words], [(said,) for _, said in words])
            return
        truth: list[tuple[str, ...]] = []
        guesses: list[tuple[str, ...]] = []
        for one in self.decisions:
            real, said = set(spans_of(one.truth)), set(spans_of(one.guess))
            for span in real | said:
                truth.append((span.type,) if span in real else ())
                guesses.append((span.type,) if span in said else ())
        yield ByClass("type", sorted({name for names in (*truth, *guesses) for name in names}), truth, guesses)

    def scores(self) -> Scores:
        found = {"words right": _words_right}
        if any(has_spans(set(one.truth)) for one in self.decisions):
            found["span F1"] = lambda some: f"{span_scores([o.truth for o in some], [o.guess for o in some])['f1']:.1%}"
        return found

    def mistake(self, one: Decision) -> tuple[float, str] | None:
        words = zip(one.probabilities, one.words, one.guess, one.truth, strict=True)
        wrong = [word for word in words if word[2] != word[3]]
        if not wrong:
            return None
        p, word, tag, true = max(wrong)
        return p, f"“{shorten(word, 60)}”: said {tag} ({p:.1%}), is {true}"


def _words_right(some: Sequence[Decision]) -> str:
    return f"{sum(one.score * one.length for one in some) / max(1, sum(one.length for one in some)):.1%}"


@dataclass(frozen=True)
class Tagging(Task[TagExample, TagFeature, Tagged]):
    """One tag per word."""

    kind: ClassVar[str] = "tagging"
    verb: ClassVar[str] = "tag"
    usage: ClassVar[tuple[str, str]] = ('tag("A man came.")', '"A man came."')
    view: ClassVar[type[DevView]] = TagView
    apart: ClassVar[bool] = True
    labels: tuple[str, ...]
    max_length: int = 128
    capitals: bool = False  # words with capitals are of segment 1: so a lower-cased vocabulary sees them

    @property
    def best(self) -> str:  # type: ignore[override]
        """Name the score that decides: the tags say which it is."""
        return "f1" if has_spans(self.labels) else "accuracy"

    @property
    def head(self) -> str:
        return "tags"

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        return config.with_settings({"labels": self.labels, "problem_type": None})

    def encode(self, example: TagExample, tokenizer: Tokenizer) -> list[TagFeature]:
        # A word of nothing that the vocabulary has anything for still gets a tag.
        words = [ids or [tokenizer.unk_id] for ids in tokenizer.encode_many(example.words)]
        pieces = [number for ids in words for number in ids]
        word_at = np.full(len(pieces), -1)  # [pieces] the word that a first piece begins, else -1
        word_at[np.cumsum([0, *map(len, words)])[:-1]] = np.arange(len(words))
        segments = [
            int(self.capitals and has_capital(word))
            for word, ids in zip(example.words, words, strict=True)
            for _ in ids
        ]
        room = self.max_length - 2
        windows = window_spans(len(pieces), room=room, stride=3 * room // 4, overlap=room // 4)
        features = []
        for window, counts in zip(windows, best_context(windows), strict=True):
            token_ids, _ = join_segments(tokenizer, pieces[window.start : window.end])
            segment_ids = [0, *segments[window.start : window.end], 0]
            own = word_at[window.start : window.end]
            positions = np.flatnonzero(counts & (own >= 0))
            targets = None if example.target is None else [example.target[word] for word in own[positions]]
            features.append(TagFeature(token_ids, segment_ids, (positions + 1).tolist(), targets))
        return features

    def remembered(self) -> dict[str, Any]:
        return super().remembered() | ({"capitals": True} if self.capitals else {})

    def count(self, features: Sequence[TagFeature]) -> float:
        return float(sum(len(feature.positions) for feature in features))

    def loss(
        self, model: Albert, packed: Packed, encoded: Encoded, *, features: Sequence[TagFeature], count: float
    ) -> Tensor:
        targets = [target for feature in features for target in feature.targets or ()]
        places = places_of(packed.lengths, [feature.positions for feature in features])
        chosen = torch.from_numpy(places).to(encoded.states.device)
        logits = model.heads["tags"](encoded.states.index_select(0, chosen))  # [words that are decided, labels]
        return cross_entropy(logits, torch.tensor(targets, device=logits.device, dtype=torch.long), count=count)

    def wanted(self, features: Sequence[TagFeature]) -> Wanted:
        return {self.head: [feature.positions for feature in features]}

    def outputs(self, feature: TagFeature, said: Said) -> Any:
        (logits,) = said[self.head]  # [words that are decided here, labels]
        return softmax(logits)

    def decide(self, example: TagExample, features: Sequence[TagFeature], outputs: Sequence[Any]) -> Tagged:
        probabilities = np.concatenate(outputs)  # [words, labels]
        best = probabilities.argmax(-1)
        words = tuple(
            TaggedWord(word, self.labels[tag], float(row[tag]), *place)
            for word, tag, row, place in zip(example.words, best, probabilities, _offsets(example), strict=True)
        )
        return Tagged(words, _spans(_text(example), words) if has_spans(self.labels) else ())

    def score(self, examples: Sequence[TagExample], predictions: Sequence[Tagged]) -> dict[str, float]:
        """Return the accuracy over words and, where tags say spans, the F1 of spans."""
        truth = [[self.labels[tag] for tag in example.target or ()] for example in examples]
        guesses = [[word.tag for word in prediction.words] for prediction in predictions]
        pairs = [pair for one, other in zip(truth, guesses, strict=True) for pair in zip(one, other, strict=True)]
        accuracy = {"accuracy": sum(one == other for one, other in pairs) / max(1, len(pairs))}
        return (span_scores(truth, guesses) if has_spans(self.labels) else {}) | accuracy

    def baseline(self, examples: Sequence[TagExample]) -> Callable[[TagExample], Tagged]:
        counts = Counter(tag for example in examples for tag in example.target or ())
        majority, count = counts.most_common(1)[0] if counts else (0, 0)
        row = np.zeros(len(self.labels))
        row[majority] = count / max(1, counts.total())
        return lambda example: self.decide(example, [], [np.tile(row, (len(example.words), 1))])

    def asked(
        self, text: str | Texts | Sequence[Texts] | None, *, words: Texts | None = None
    ) -> tuple[list[TagExample], bool]:
        if (text is None) == (words is None):
            raise UsageError("tag: give a text, a list of texts, or words=[…] of one sentence")
        if words is not None or text is None:
            return [TagExample(column("words", words))], False
        if (
            not isinstance(text, str)
            and len(text) > 1
            and all(isinstance(w, str) and not re.search(r"\s", w) for w in text)
        ):
            message = "tag: took a list of %d words as %d texts: for one sentence say tag(words=[…])"
            log.warning(message, len(text), len(text))
        examples = [
            split_words(one) if isinstance(one, str) else TagExample(column("words", one))
            for one in ([text] if isinstance(text, str) else text)
        ]
        return examples, not isinstance(text, str)

    def example(self, text: str, *, pair: str | None, question: str | None, choices: Sequence[str]) -> TagExample:
        return split_words(text)

    def record(self, example: TagExample, prediction: Tagged) -> Record:
        values = asdict(prediction)
        return {"text": _text(example), "spans": list(values["spans"]), "words": list(values["words"])}

    def decision(self, example: TagExample, prediction: Tagged) -> Decision:
        truth = tuple(self.labels[number] for number in example.target or ())
        guess = tuple(word.tag for word in prediction.words)
        right = sum(one == other for one, other in zip(truth, guess, strict=True))
        return Decision(
            shorten(_text(example)),
            len(truth),
            truth,
            guess,
            right / max(1, len(truth)),
            example.place,
            probabilities=tuple(word.probability for word in prediction.words),
            words=example.words,
        )


def _text(example: TagExample) -> str:
    return " ".join(example.words) if example.text is None else example.text


def _offsets(example: TagExample) -> Sequence[tuple[int, int]]:
    """Return the place of each word in the text, which is the words with spaces between them if there is none."""
    if example.offsets is not None:
        return example.offsets
    ends = np.cumsum([len(word) + 1 for word in example.words]) - 1
    return [(int(end) - len(word), int(end)) for word, end in zip(example.words, ends, strict=True)]


def _spans(text: str, words: Sequence[TaggedWord]) -> tuple[TaggedSpan, ...]:
    found = []
    for span in spans_of([word.tag for word in words]):
        own = words[span.first : span.last + 1]
        start, end = own[0].start, own[-1].end
        found.append(TaggedSpan(text[start:end], span.type, min(word.probability for word in own), start, end))
    return tuple(found)
