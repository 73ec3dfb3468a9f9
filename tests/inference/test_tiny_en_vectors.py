"""The second model that comes with the package: its cosines mean something, here and in sentence-transformers."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import albert
from albert.model.locate import SHIPPED

FOLDER = SHIPPED / "tiny-en-vectors"
TEXTS = ["A man is playing a guitar.", "Someone makes music.", "The stock market fell on Monday."]


def test_its_weights_are_under_5_mb_and_its_card_says_who_taught_it() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size < 5_000_000
    assert "all-MiniLM-L6-v2 (Apache-2.0)" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_texts_that_mean_the_same_are_near() -> None:
    model = albert.load("tiny-en-vectors")
    assert model.similarity(TEXTS[0], TEXTS[1]) > model.similarity(TEXTS[0], TEXTS[2]) + 0.3


def test_sentence_transformers_gives_the_same_vectors() -> None:
    peer = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    theirs = peer.SentenceTransformer(str(FOLDER), device="cpu", model_kwargs={"dtype": "float32"}).encode(TEXTS)
    np.testing.assert_allclose(albert.load("tiny-en-vectors").embed(TEXTS), theirs, atol=1e-4)


def test_its_cosines_follow_people_on_sts_b() -> None:
    data = Path(os.environ.get("ALBERT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    path = data / "glue" / "STS-B" / "dev.tsv"
    if not path.exists():
        pytest.skip("needs the shared data: STS-B")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    model = albert.load("tiny-en-vectors")
    first, second = (model.embed([row[name] for row in rows], normalize=True) for name in ("sentence1", "sentence2"))
    truth = [float(row["score"]) for row in rows]
    assert spearmanr((first * second).sum(axis=1), truth)[0] > 0.77  # 0.781 when it was made; TF-IDF has 0.755
