"""Golden losses: twenty steps of a fixed tiny model on fixed synthetic text, against values in losses.json.

A change of the losses by more than rounding is a change of the model, the data, the optimizer or the loop: find out
which, and whether it was meant, before writing new values with `python tests/golden/test_golden_losses.py`. Text,
vocabulary and weights depend on no file and no trained tokenizer.
"""

from __future__ import annotations

import json
import platform
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from albert.data.store import TokenStore, write_store
from albert.pretrain import Pretrained, pretrain
from albert.pretrain.settings import PretrainSettings
from albert.settings import read_settings
from albert.tokenizer import Tokenizer
from albert.tokenizer.folder import SPECIAL_PIECES
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.proto import write_model

GOLDEN = Path(__file__).with_name("losses.json")
COMMAND = "python tests/golden/test_golden_losses.py"
TOLERANCE = 1e-3
WORDS, TAILS = 75, 20  # pieces that begin a word, and that go on with one
SETTINGS = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 3, "data.max_length": 64, "train.steps": 20, "train.batch_size": 16, "train.seed": 1,
    "train.precision": "fp32", "train.log_every": 1, "train.save_every": 100, "train.eval_every": 100,
    "optimizer.warmup_steps": 4,
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "lamb": {"optimizer.name": "lamb", "optimizer.lr": 0.02},
    "adamw": {"optimizer.name": "adamw", "optimizer.lr": 0.003},
    "lamb, growing, in micro-batches": {
        "optimizer.name": "lamb", "optimizer.lr": 0.02, "train.micro_batch": 4, "data.max_length": 128,
        "grow.depth": [(0.0, 1), (0.5, 3)], "grow.length": [(0.0, 64), (0.6, 128)],
    },
}  # fmt: skip


def synthetic_store(folder: Path) -> TokenStore:
    """Make forty documents in which a word often brings the same next one, and some words have a second piece."""
    heads = [f"▁{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(WORDS)]
    pieces = [*heads, *(f"{chr(97 + n)}q" for n in range(TAILS))]
    vocabulary = [*((piece, 0.0) for piece in SPECIAL_PIECES), *((piece, -1.0 - n) for n, piece in enumerate(pieces))]
    draw = random.Random(0).random  # the one generator whose numbers Python promises to keep

    def sentence() -> list[int]:
        word, ids = int(draw() * WORDS), []
        for _ in range(4 + int(draw() * 10)):
            ids.append(len(SPECIAL_PIECES) + word)
            if draw() < 0.2:
                ids.append(len(SPECIAL_PIECES) + WORDS + word % TAILS)
            word = (word * 7 + 3) % WORDS if draw() < 0.8 else int(draw() * WORDS)
        return ids

    documents = [[sentence() for _ in range(3 + int(draw() * 25))] for _ in range(40)]
    return write_store(folder, documents, tokenizer=Tokenizer(write_model(vocabulary, b""), Normalisation()))


def losses(case: str, folder: Path) -> list[float]:
    """Run a case and give the loss of each step."""
    settings = read_settings(PretrainSettings, defaults=SETTINGS | CASES[case])
    result = pretrain(synthetic_store(folder / "store"), "tiny", folder / "run", settings=settings)
    assert isinstance(result, Pretrained)
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["loss"] for line in lines]


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps_have_the_losses_that_are_written_down_twice_over(case: str, tmp_path: Path) -> None:
    first, second = losses(case, tmp_path / "1"), losses(case, tmp_path / "2")
    weights = [(tmp_path / name / "run/model/model.safetensors").read_bytes() for name in ("1", "2")]
    assert first == second, "the same run has other losses the second time"
    assert weights[0] == weights[1], "the same run has other weights the second time"
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["losses"][case]
    assert len(first) == 20
    assert first == pytest.approx(golden, abs=TOLERANCE), f"if the change is meant: {COMMAND}"


def main() -> None:
    """Write the losses down anew."""
    with tempfile.TemporaryDirectory() as folder:
        found = {case: losses(case, Path(folder) / str(number)) for number, case in enumerate(CASES)}
    made = {"command": COMMAND, "torch": torch.__version__, "machine": platform.machine(), "tolerance": TOLERANCE}
    rounded = {case: [round(loss, 6) for loss in values] for case, values in found.items()}
    GOLDEN.write_text(json.dumps({"made": made, "losses": rounded}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
