"""The depth dial: what a model would say if it stopped after each pass of its layers, as series for a chart.

ALBERT applies one layer again and again, so every pass gives states that the same head can read. Goes through the queue
like all other requests: an engine that answers for every layer, and a task that decides for every layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from albert.batch import Batch, Said, Wanted
from albert.inference.embed import Vector
from albert.inference.predictor import Decides, Predictor
from albert.inference.torch_engine import TorchEngine
from albert.inference.vectors import unit
from albert.serve.batching import Lane
from albert.tokenizer import Tokenizer

LAYERS = "layers"
SERIES = 6  # of a chart
GUESSES = 1000  # for a blank, among which those of the last layer are looked for in the others


class LayerEngine:
    """A PyTorch engine that says what every layer would, were it the last."""

    def __init__(self, engine: TorchEngine) -> None:
        self._engine = engine
        self.name, self.config, self.heads = engine.name, engine.config, engine.heads

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        """Return for each text what the heads say after each layer, under one name."""
        layers = self._engine.run_layers(batch, wanted)
        return [{LAYERS: cast(Any, own)} for own in zip(*layers, strict=True)]


@dataclass(frozen=True, eq=False)
class EveryLayer:
    """A task's decisions after every layer."""

    task: Decides[Any, Any, Any]

    def encode(self, example: Any, tokenizer: Tokenizer) -> list[Any]:
        """Encode as the task does."""
        return self.task.encode(example, tokenizer)

    def wanted(self, features: Sequence[Any]) -> Wanted:
        """Return what the task wants."""
        return self.task.wanted(features)

    def outputs(self, feature: Any, said: Said) -> Any:
        """Return the task's outputs after every layer."""
        return [self.task.outputs(feature, cast(Said, own)) for own in said[LAYERS]]

    def decide(self, example: Any, features: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the task's decision after every layer."""
        return [self.task.decide(example, features, own) for own in zip(*outputs, strict=True)]


def layer_lane(lane: Lane, engine: TorchEngine) -> Lane:
    """Return the lane of the same task for every layer, of the model in an engine that can stop at each."""
    predictor = Predictor(LayerEngine(engine), lane.predictor.tokenizer, batch_tokens=lane.predictor.batch_tokens)
    return Lane(predictor, EveryLayer(lane.task))


def chart(verb: str, decisions: Sequence[Any]) -> dict[str, Any]:
    """Return series by name, what is decided after each layer in words, and the range of the values."""
    draw: dict[str, Callable[[Sequence[Any]], dict[str, Any]]] = {
        "predict": _classes, "answer": _answers, "choose": _choices, "tag": _tags, "fill": _blanks,
    }  # fmt: skip
    return draw[verb](decisions)


def chart_cosines(texts: Sequence[str], vectors: Sequence[Sequence[Vector]]) -> dict[str, Any]:
    """Return the cosines of the first text with each of the others, by layer."""
    layers = [unit(np.stack([own[layer] for own in vectors])) for layer in range(len(vectors[0]))]
    cosines = [rows[1:] @ rows[0] for rows in layers]
    best = np.argsort(-cosines[-1])[:SERIES]
    series = [{"name": texts[i], "values": [float(row[i]) for row in cosines]} for i in best]
    low = min(0.0, *(min(one["values"]) for one in series))
    return _chart(series, [texts[int(row.argmax())] for row in cosines], (low, 1.0))


def _chart(
    series: list[dict[str, Any]], decisions: list[str], limits: tuple[float, float] = (0.0, 1.0)
) -> dict[str, Any]:
    return {"series": series[:SERIES], "decisions": decisions, "range": list(limits)}


def _shares(series: list[dict[str, Any]], decisions: list[str]) -> dict[str, Any]:
    """Return a chart of probabilities of which all may be small."""
    most = max((value for one in series[:SERIES] for value in one["values"]), default=1.0)
    return _chart(series, decisions, (0.0, min(1.0, 1.2 * most) or 1.0))


def _classes(decisions: Sequence[Any]) -> dict[str, Any]:
    if hasattr(decisions[-1], "value"):
        values = [one.value for one in decisions]
        low, high = min(values), max(values)
        spread = (high - low) * 0.1 or 1.0
        return _chart(
            [{"name": "value", "values": values}], [f"{v:.3f}" for v in values], (low - spread, high + spread)
        )
    last = decisions[-1].probabilities
    names = sorted(last, key=lambda label: -last[label])
    series = [{"name": name, "values": [one.probabilities[name] for one in decisions]} for name in names]
    said = [one.label if hasattr(one, "label") else ", ".join(one.labels) or "none" for one in decisions]
    return _chart(series, said)


def _answers(decisions: Sequence[Any]) -> dict[str, Any]:
    shares = [{one.text: one.probability for one in reversed(given.candidates)} for given in decisions]
    names = list(dict.fromkeys(one.text for one in decisions[-1].candidates))
    series = [{"name": name, "values": [share.get(name, 0.0) for share in shares]} for name in names]
    return _shares(series, [one.text or "no answer" for one in decisions])


def _choices(decisions: Sequence[Any]) -> dict[str, Any]:
    count = len(decisions[-1].probabilities)
    series = [{"name": str(i + 1), "values": [one.probabilities[i] for one in decisions]} for i in range(count)]
    return _chart(series, [f"{one.choice + 1}: {one.text}" for one in decisions])


def _tags(decisions: Sequence[Any]) -> dict[str, Any]:
    """Follow the words with a tag, or with the least certain ones: how probable their last tag is, where it is said."""
    last = decisions[-1].words
    places = sorted(range(len(last)), key=lambda i: (last[i].tag == "O", last[i].probability))[:SERIES]
    series = [
        {
            "name": f"{last[i].text} {last[i].tag}",
            "values": [one.words[i].probability if one.words[i].tag == last[i].tag else 0.0 for one in decisions],
        }
        for i in sorted(places)
    ]
    said = [" ".join(f"{word.text}/{word.tag}" for word in one.words if word.tag != "O") or "O" for one in decisions]
    return _chart(series, said)


def _blanks(decisions: Sequence[Any]) -> dict[str, Any]:
    """Follow the best words for the first blank."""
    guesses = [one[0].guesses for one in decisions]
    shares = [{one.piece: one.probability for one in own} for own in guesses]
    series = [
        {
            "name": f"…{one.text}" if one.continues else one.text,
            "values": [share.get(one.piece, 0.0) for share in shares],
        }
        for one in guesses[-1][:SERIES]
    ]
    said = [" … ".join(blank.guesses[0].text for blank in one) for one in decisions]
    return _shares(series, said)
