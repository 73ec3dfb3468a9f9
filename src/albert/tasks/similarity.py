"""How alike two texts are: the cosine of their vectors, each the mean of the last layer's states over all tokens.

Three kinds of examples, in any mixture. A text with one that belongs to it, perhaps with a hard negative: InfoNCE, the
cross-entropy of finding it by cosine / temperature among those of the other examples and all hard negatives. A pair
with a score from 0 to 1: squared error of the cosine, over twice the temperature, so that both losses pull a cosine by
error / temperature and neither drowns the other. (CoSENT ranks the pairs of a batch; squared error is a sum over pairs,
the same however a batch is divided, and its cosines mean what the scores mean.) A text alone: it is read twice, and
dropout makes the two vectors differ (unsupervised SimCSE).

In-batch negatives are those of the micro-batch: accumulation and several processes add micro-batches up, they don't add
negatives. A candidate that is the same text as the query or its answer, or another answer to the same query, is no
negative. A text is cut at `max_length`, as sentence-transformers does, which opens the folder with the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from albert.batch import STATES, Said, Wanted
from albert.errors import UsageError
from albert.model import Albert, Packed
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.model.heads import IMPOSSIBLE, pool
from albert.model.losses import cross_entropy, squared_error
from albert.tasks.asking import Texts, shared, side_by_side
from albert.tasks.decision import Decision, shorten
from albert.tasks.dev_view import DevView
from albert.tasks.scores import regression_scores, search_scores
from albert.tasks.task import Example, Feature, Record, Task, join_segments
from albert.tasks.text_views import NumberView
from albert.tokenizer import Tokenizer

TEMPERATURE = 0.05
DROPOUT = 0.1  # of texts alone, where the model has none
TEXT, PAIR, NEGATIVE = range(3)


@dataclass(frozen=True)
class PairExample(Example):
    """A text, one that belongs to it or is compared with it, perhaps one that does not; a score from 0 to 1."""

    text: str
    pair: str | None = None
    negative: str | None = None
    target: float | None = None


@dataclass(frozen=True)
class PairFeature(Feature):
    """One of the texts of an example; a new example begins with part 0."""

    part: int
    target: float | None


@dataclass(frozen=True)
class Likeness:
    """The cosine of two texts, and the vectors of all texts of the example: search is scored by them."""

    similarity: float
    vectors: tuple[Any, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Similarity(Task[PairExample, PairFeature, Likeness]):
    """The similarity of two texts."""

    kind: ClassVar[str] = "similarity"
    verb: ClassVar[str] = "similarity"
    options: ClassVar[tuple[str, ...]] = ("pair",)
    usage: ClassVar[tuple[str, str]] = (
        'similarity("A man came.", "Someone arrived.")',
        '"A man came." --pair "Someone arrived."',
    )
    view: ClassVar[type[DevView]] = NumberView
    max_length: int = 128
    best: str = "spearman"  # or mrr, where dev has no scores
    temperature: float = field(default=TEMPERATURE, compare=False)  # of training
    alone: bool = field(default=False, compare=False)  # whether training has texts alone, which need dropout

    @property
    def head(self) -> str:
        return STATES

    def configure(self, config: AlbertConfig) -> AlbertConfig:
        if not self.alone or config.hidden_dropout_prob or config.attention_probs_dropout_prob:
            return config
        return config.with_settings({"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT})

    def encode(self, example: PairExample, tokenizer: Tokenizer) -> list[PairFeature]:
        texts = [example.text, example.text if example.pair is None else example.pair]
        texts += [] if example.negative is None else [example.negative]
        encoded, room = [tokenizer.encode(text) for text in texts], self.max_length - 2
        unread = sum(max(0, len(ids) - room) for ids in encoded)
        return [
            PairFeature(*join_segments(tokenizer, ids[:room]), part, example.target, unread=unread)
            for part, ids in enumerate(encoded)
        ]

    def count(self, features: Sequence[PairFeature]) -> float:
        return float(sum(feature.part == TEXT for feature in features))

    def loss(
        self, model: Albert, packed: Packed, encoded: Encoded, *, features: Sequence[PairFeature], count: float
    ) -> Tensor:
        if self.alone and not (model.config.hidden_dropout_prob or model.config.attention_probs_dropout_prob):
            raise UsageError(
                "tune.dropout=0: texts alone are learnt from by what dropout changes: leave it out, or 0.1"
            )
        vectors = F.normalize(pool(encoded, packed).float(), dim=-1)  # [B, H]
        starts = [row for row, feature in enumerate(features) if feature.part == TEXT]
        scored = [row for row in starts if features[row].target is not None]
        searched = [row for row in starts if features[row].target is None]
        total = vectors.new_zeros(())
        if scored:
            cosines = (_rows(vectors, scored) * _rows(vectors, [row + 1 for row in scored])).sum(-1)
            targets = torch.tensor([features[row].target for row in scored], device=vectors.device)
            total = total + squared_error(cosines, targets, count=count) / (2 * self.temperature)
        if searched:
            candidates = [row + 1 for row in searched]
            candidates += [row for row, f in enumerate(features) if f.part == NEGATIVE and f.target is None]
            with torch.autocast(vectors.device.type, enabled=False):  # bf16 would make cosines within 0.006 equal
                logits = _rows(vectors, searched) @ _rows(vectors, candidates).T  # [searched, candidates]
            logits = logits / self.temperature
            same = torch.from_numpy(_no_negatives(features, searched, candidates)).to(vectors.device)
            labels = torch.arange(len(searched), device=vectors.device)
            total = total + cross_entropy(logits.masked_fill(same, IMPOSSIBLE), labels, count=count)
        return total

    def wanted(self, features: Sequence[PairFeature]) -> Wanted:
        return {STATES: "tokens"}

    def outputs(self, feature: PairFeature, said: Said) -> Any:
        (states,) = said[STATES]
        return states.mean(axis=0, dtype=np.float64)

    def decide(self, example: PairExample, features: Sequence[PairFeature], outputs: Sequence[Any]) -> Likeness:
        vectors = tuple((vector / (np.linalg.norm(vector) or 1.0)).astype(np.float32) for vector in outputs)
        return Likeness(float(np.dot(*vectors[:2])), vectors)

    def score(self, examples: Sequence[PairExample], predictions: Sequence[Likeness]) -> dict[str, float]:
        both = list(zip(examples, predictions, strict=True))
        scored = [(example.target, one.similarity) for example, one in both if example.target is not None]
        searched = [(example, one) for example, one in both if example.target is None]
        scores: dict[str, float] = {}
        if scored:
            truth, cosines = np.array(scored, dtype=np.float64).T
            found = regression_scores(truth, cosines)
            scores |= {name: found[name] for name in ("spearman", "pearson")}
        if searched:
            scores |= _search(searched)
        return scores

    def baseline(self, examples: Sequence[PairExample]) -> Callable[[PairExample], Likeness]:
        same = np.ones(1, dtype=np.float32)
        return lambda _: Likeness(0.0, (same, same, same))

    def asked(self, text: str | Texts, pair: str | Texts) -> tuple[list[PairExample], bool]:
        pairs = side_by_side(text=shared(text, pair), pair=shared(pair, text))
        return [PairExample(*one) for one in pairs], not (isinstance(text, str) and isinstance(pair, str))

    def example(self, text: str, *, pair: str | None, question: str | None, choices: Sequence[str]) -> PairExample:
        if pair is None:
            raise UsageError("similarity is that of two texts: give the second (--pair)")
        return PairExample(text, pair)

    def record(self, example: PairExample, prediction: Likeness) -> Record:
        return {"text": example.text, "pair": example.pair, "similarity": prediction.similarity}

    def decision(self, example: PairExample, prediction: Likeness) -> Decision | None:
        if example.target is None or example.pair is None:
            return None
        true, said = example.target, prediction.similarity
        return Decision(
            f"{shorten(example.text)} ‖ {shorten(example.pair)}",
            len(example.text.split()) + len(example.pair.split()),
            (f"{true:.4g}",),
            (f"{said:.4g}",),
            abs(said - true),
            place=example.place,
            values=(true, said),
        )

    def remembered(self) -> dict[str, Any]:
        return super().remembered() | {"best": self.best}

    def files(self, config: AlbertConfig) -> dict[str, Any]:
        return sentence_transformers_files(config.hidden_size, max_length=self.max_length)


def _rows(vectors: Tensor, rows: Sequence[int]) -> Tensor:
    return vectors.index_select(0, torch.tensor(rows, device=vectors.device))


def _no_negatives(features: Sequence[PairFeature], searched: Sequence[int], candidates: Sequence[int]) -> np.ndarray:
    """Return which candidates of which query are not wrong answers to it, its own one apart: [searched, candidates]."""
    numbers: dict[tuple[int, ...], int] = {}
    ids = np.array([numbers.setdefault(tuple(feature.token_ids), len(numbers)) for feature in features])
    queries, answers, found = ids[list(searched)], ids[[row + 1 for row in searched]], ids[list(candidates)]
    same = (found == queries[:, None]) | (found == answers[:, None])
    count = len(searched)
    same[:, :count] |= queries == queries[:, None]
    same[np.arange(count), np.arange(count)] = False
    return same


def _search(searched: Sequence[tuple[PairExample, Likeness]]) -> dict[str, float]:
    """Score the search of each query's answers among all answers and hard negatives; equal texts are one.

    A query that is also an answer to another is no wrong answer to itself.
    """
    queries: dict[str, Any] = {}
    candidates: dict[str, Any] = {}
    right: dict[str, set[str]] = {}
    for example, one in searched:
        texts = (example.text, example.pair or example.text, example.negative)
        queries.setdefault(texts[0], one.vectors[0])
        candidates.setdefault(texts[1], one.vectors[1])
        if texts[2] is not None:
            candidates.setdefault(texts[2], one.vectors[2])
        right.setdefault(texts[0], set()).add(texts[1])
    numbers = {text: number for number, text in enumerate(candidates)}
    relevant = [[numbers[text] for text in right[query]] for query in queries]
    own = [numbers.get(query) for query in queries]
    return search_scores(list(queries.values()), list(candidates.values()), relevant, own=own)


def sentence_transformers_files(width: int, *, max_length: int) -> dict[str, Any]:
    """Return the files by which sentence-transformers opens a folder: the encoder, then the mean over tokens."""
    kinds = ("Transformer", "Pooling")
    return {
        "modules.json": [
            {
                "idx": i,
                "name": str(i),
                "path": f"{i}_{kind}" if i else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for i, kind in enumerate(kinds)
        ],
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    }
