"""A small vocabulary, and a small model of transformers' to convert."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

SMALL: dict[str, Any] = {
    "vocab_size": 90,
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "hidden_act": "gelu_new",
}


@pytest.fixture(scope="session")
def spiece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a vocabulary of 90 pieces by ALBERT's recipe."""
    import sentencepiece

    from albert.interop.head_count import TEXT

    path = tmp_path_factory.mktemp("vocab") / "30k-clean.model"
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([TEXT.lower()] * 3),
        model_writer=model,
        vocab_size=90,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols="[CLS],[SEP],[MASK]",
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    return path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open pickles in this process, to save the seconds that a child takes to load torch."""
    from safetensors.torch import save_file

    from albert.interop import convert
    from albert.interop.reader import read_pickle
    from albert.interop.source import Source

    def extract(source: Source, target: Path) -> None:
        save_file(read_pickle(source.weights), target)

    monkeypatch.setattr(convert, "_extract", extract)


@pytest.fixture
def legacy(tmp_path: Path, spiece: Path) -> Path:
    """Write a folder as transformers did before safetensors, with random weights."""
    import torch
    from transformers import AlbertConfig, AlbertForPreTraining

    torch.manual_seed(0)
    model = AlbertForPreTraining(AlbertConfig(**SMALL)).eval()
    folder = tmp_path / "legacy"
    folder.mkdir()
    values = SMALL | {"model_type": "albert", "architectures": ["AlbertForPreTraining"]}
    (folder / "config.json").write_text(json.dumps(values))
    (folder / "spiece.model").write_bytes(spiece.read_bytes())
    state = model.state_dict() | {"albert.embeddings.position_ids": torch.arange(40).unsqueeze(0)}
    torch.save(state, folder / "pytorch_model.bin")
    return folder
