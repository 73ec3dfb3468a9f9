"""Tuning for similarity: it learns, in every form; its folder opens elsewhere with the same vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import albert
from albert.errors import UsageError
from albert.evaluate.tuned import TaskScores, evaluate_task
from albert.finetune import Finetuned, finetune
from albert.finetune.preparation import prepare
from albert.finetune.settings import FinetuneSettings
from albert.labelled.catalog import open_data
from albert.labelled.request import DataRequest
from word_model import CLASSES, WORDS

Settings = Callable[..., FinetuneSettings]
PROBES = ["the cat sat", "a lovely winter letter came to the town at noon", "awful", "the dog left " * 30]


def phrase(rng: np.random.Generator, word: str) -> str:
    words = [WORDS[i] for i in rng.integers(len(WORDS), size=4)]
    words.insert(int(rng.integers(5)), word)
    return " ".join(words)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write texts that are alike if they share the word of their class."""
    folder, rng, words = tmp_path_factory.mktemp("data"), np.random.default_rng(0), list(CLASSES.values())

    def scored(count: int) -> list[dict[str, Any]]:
        found = []
        for _ in range(count):
            one, other = (words[i] for i in rng.integers(len(words), size=2))
            score = 5.0 if one == other else float(rng.integers(2))
            found.append({"text": phrase(rng, one), "pair": phrase(rng, other), "score": score})
        return found

    triples = []
    for number in range(200):
        own, other = words[number % 3], words[(number + 1) % 3]
        triples.append({"text": phrase(rng, own), "pair": phrase(rng, own), "negative": phrase(rng, other)})
    alone = [{"text": phrase(rng, words[number % 3])} for number in range(100)]
    return {
        "scored": write(folder / "scored.jsonl", scored(200)),
        "triples": write(folder / "triples.jsonl", triples),
        "mixed": write(folder / "mixed.jsonl", [*scored(80), *triples[:80], *alone[:40]]),
        "alone": write(folder / "alone.jsonl", alone),
        "dev": write(folder / "dev.jsonl", scored(80)),
    }


def tune(
    data: dict[str, Path], form: str, model: Path, out: Path, settings: FinetuneSettings, **named: Any
) -> Finetuned:
    opened = open_data(DataRequest(data[form], task="similarity", dev=data["dev"]))
    result = finetune(opened, str(model), out, settings=settings, **named)
    assert isinstance(result, Finetuned)
    return result


@pytest.fixture(scope="module")
def tuned(
    data: dict[str, Path], model_folder: Path, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Tune on triples; two seeds, so that the folder is the copy of the best."""
    out = tmp_path_factory.mktemp("runs") / "triples"
    result = tune(data, "triples", model_folder, out, settings(train__batch_size=32), seeds=2)
    assert result.chosen.score is not None
    assert result.chosen.score > 0.5
    return out / "model"


@pytest.mark.parametrize("form", ["scored", "mixed"])
def test_what_is_alike_becomes_similar(
    form: str, data: dict[str, Path], model_folder: Path, settings: Settings, tmp_path: Path
) -> None:
    before = tune(data, form, model_folder, tmp_path / "before", settings(train__steps=1, optimizer__lr=1e-9))
    after = tune(data, form, model_folder, tmp_path / "after", settings(train__steps=80))
    assert before.chosen.score is not None
    assert after.chosen.score is not None
    assert after.chosen.score > max(0.5, before.chosen.score + 0.2)
    assert set(after.chosen.scores) == {"valid_spearman", "valid_pearson"}


def test_texts_alone_turn_dropout_on_and_say_so(
    data: dict[str, Path], model_folder: Path, settings: Settings, tmp_path: Path
) -> None:
    opened = open_data(DataRequest(data["alone"], task="similarity", dev=data["dev"]))
    prepared = prepare(opened, str(model_folder), settings())
    assert any("dropout 0.1 is turned on for training" in note for note in prepared.notes)
    model = prepared.build(settings())
    assert model.config.hidden_dropout_prob == 0.1
    assert model.encoder.pooler is not None
    assert not model.encoder.pooler.weight.requires_grad  # nothing reads it
    tune(data, "alone", model_folder, tmp_path / "run", settings(train__steps=2, optimizer__warmup_steps=1))
    with pytest.raises(UsageError, match=r"tune\.dropout=0"):
        tune(
            data,
            "alone",
            model_folder,
            tmp_path / "none",
            settings(train__steps=2, optimizer__warmup_steps=1, tune__dropout=0.0),
        )
    with pytest.raises(UsageError, match="similarity has no head, so nothing is left to train"):
        tune(data, "alone", model_folder, tmp_path / "frozen", settings(tune__freeze="encoder"))


def test_the_folder_has_no_head_and_is_evaluated_by_its_own_task(tuned: Path, data: dict[str, Path]) -> None:
    assert json.loads((tuned / "config.json").read_text())["architectures"] == ["AlbertModel"]
    scores = evaluate_task(str(tuned), DataRequest(data["dev"]))
    assert isinstance(scores, TaskScores)
    model = albert.load(tuned)
    assert model.abilities == ["similarity", "embed", "search"]
    same, other = model.similarity("the lovely cat", ["a lovely dog", "an awful dog"])
    assert same > other
    (decided,) = model.predict([model.task.example("the lovely cat", pair="a lovely dog", question=None, choices=[])])
    assert decided.similarity == pytest.approx(same, abs=1e-5)


def test_sentence_transformers_opens_the_folder_with_the_same_vectors(tuned: Path) -> None:
    peer = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    theirs = peer.SentenceTransformer(str(tuned), device="cpu")
    model = albert.load(tuned)
    assert theirs.get_max_seq_length() == model.embedding().max_length
    assert np.asarray(theirs.encode(PROBES)) == pytest.approx(model.embed(PROBES), abs=1e-5)
    similarity = theirs.similarity(*(theirs.encode([text]) for text in PROBES[:2]))
    assert float(similarity) == pytest.approx(model.similarity(PROBES[0], PROBES[1]), abs=1e-5)


def test_transformers_opens_the_folder_and_the_mean_of_its_states_is_the_vector(tuned: Path) -> None:
    peer = pytest.importorskip("transformers")
    model, tokenizer = peer.AutoModel.from_pretrained(tuned), peer.AutoTokenizer.from_pretrained(tuned)
    ours = albert.load(tuned).embed(PROBES[:3])
    for text, vector in zip(PROBES[:3], ours, strict=True):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert states.mean(0).numpy() == pytest.approx(vector, abs=1e-5)
