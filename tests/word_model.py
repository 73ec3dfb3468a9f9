"""A tiny model folder with a tokenizer of its own, and sentences whose class is a word in them: fixtures for all."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from albert.labelled.request import Opened
    from albert.tasks.classification import TextExample
    from albert.tokenizer import Tokenizer

TEXT = "the a cat ship sister winter town coal bread letter dog harbour rain noon man sat left wrote came"
WORDS = TEXT.split()
CLASSES = {"bad": "awful", "fair": "decent", "good": "lovely"}


@pytest.fixture(scope="session")
def word_tokenizer() -> Tokenizer:
    """Return a vocabulary of the words of the sentences."""
    import sentencepiece

    from albert.tokenizer import Tokenizer
    from albert.tokenizer.normalisation import Normalisation

    model = io.BytesIO()
    lines = [" ".join([*WORDS[i:], *CLASSES.values()]) for i in range(len(WORDS))]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 5), model_writer=model, vocab_size=80, hard_vocab_limit=False, pad_id=0,
        unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]", minloglevel=2, num_threads=1,
    )  # fmt: skip
    return Tokenizer(model.getvalue(), Normalisation())


@pytest.fixture(scope="session")
def model_folder(word_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a pre-trained model, as far as a folder can tell."""
    from albert.model import AlbertConfig, new_model
    from albert.model.folder import save_model

    config = AlbertConfig(
        vocab_size=word_tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(new_model(config, ("mlm", "order"), seed=1), folder, tokenizer=word_tokenizer)
    return folder


def sentences(count: int, labels: tuple[str, ...], *, seed: int, noise: float = 0.0) -> list[TextExample]:
    """Draw sentences that hold the word of their class."""
    import numpy as np

    from albert.tasks.classification import TextExample

    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        target = int(rng.integers(len(labels)))
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=int(rng.integers(2, 12)))]
        words.insert(int(rng.integers(len(words))), CLASSES[labels[target]])
        if rng.random() < noise:
            target = int(rng.integers(len(labels)))
        examples.append(TextExample(" ".join(words), target=target))
    return examples


@pytest.fixture(scope="session")
def opened() -> Callable[..., Opened]:
    """Return a function that makes data to tune on; with noise 1 there is nothing to learn."""
    from albert.labelled.request import Opened
    from albert.tasks.classification import Classification
    from albert.tasks.task import Splits

    def make(*labels: str, noise: float = 0.0, train: int = 160) -> Opened:
        labels = labels or ("bad", "good")
        splits = Splits(
            sentences(train, labels, seed=0, noise=noise), {"dev": sentences(40, labels, seed=1, noise=noise)}
        )
        return Opened(Classification(labels), splits, ["made by hand"], f"data {labels} {noise}", {"text": "body"})

    return make
