"""The model that comes with the package: small, complete, and it has learnt."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import albert
from albert.batch import pack
from albert.model.folder import load_model
from albert.model.locate import SHIPPED
from albert.tokenizer import Tokenizer

FOLDER = SHIPPED / "tiny-en"


def test_its_weights_are_half_precision_under_5_mb_with_vocabulary_and_card() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size < 5_000_000
    assert {"config.json", "spiece.model", "tokenizer.json", "README.md"} <= {file.name for file in FOLDER.iterdir()}
    assert "SOP accuracy" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "word"),
    [("the united [MASK] of america", "states"), ("She opened the [MASK] and went out.", "door")],
)
def test_it_fills_in_what_english_would_say(text: str, word: str) -> None:
    (blank,) = albert.load("tiny-en").fill(text)
    assert blank.guesses[0].text == word


def test_transformers_opens_it_and_computes_the_same() -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = Tokenizer.load(FOLDER)
    ids = [tokenizer.cls_id, *tokenizer.encode("The river runs down to the sea."), tokenizer.sep_id]
    theirs = transformers.AlbertForPreTraining.from_pretrained(FOLDER, dtype=torch.float32).eval()
    model = load_model(FOLDER).model
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids]))
        encoded = model(pack([ids]))
        ours = model.mlm_logits(encoded, torch.from_numpy(np.arange(len(ids))))
        order = model.heads["order"](encoded.pooled)
    torch.testing.assert_close(ours, expected.prediction_logits[0], atol=1e-4, rtol=0)
    torch.testing.assert_close(order, expected.sop_logits, atol=1e-4, rtol=0)
