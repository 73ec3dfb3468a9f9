"""What a pre-trained encoder knows before it is tuned, in a minute: `python benchmarks/probe.py MODEL…`.

Mood: a logistic regression on mean vectors of 4,000 sentences of SST-2, scored on dev; of the word embeddings alone, of
the last layer, and of plain counts of words. Likeness: the correlation of cosines of mean vectors with STS-B's scores.
Copying: a word is hidden in a sentence; how often is it found when the same sentence stands before it, when another
does, and when none does. A model that can't copy can't compare two texts either.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import recording
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from albert.batch import pack
from albert.model import Albert, Packed
from albert.model.folder import load_model
from albert.model.locate import locate
from albert.tasks.task import join_segments
from albert.tokenizer import Tokenizer

BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["tiny-en"], help="model folders, or names of shipped models")
    rows = [probe(name) for name in parser.parse_args().models]
    recording.print_table([counts_of_words(), *rows])


def table(path: Path) -> list[list[str]]:
    """Read the rows of a GLUE table."""
    return [line.split("\t") for line in path.read_text().splitlines()[1:]]


def moods() -> tuple[list[list[str]], list[list[str]]]:
    """Choose 4,000 sentences of SST-2 to fit on, and give dev."""
    folder = recording.data_folder() / "glue" / "SST-2"
    return random.Random(0).sample(table(folder / "train.tsv"), 4_000), table(folder / "dev.tsv")


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def fit(train: Any, dev: Any, train_rows: Sequence[Sequence[str]], dev_rows: Sequence[Sequence[str]]) -> str:
    """Fit a logistic regression and score it on dev."""
    judge = LogisticRegression(C=0.1, max_iter=500).fit(train, [row[1] for row in train_rows])
    return percent(judge.score(dev, [row[1] for row in dev_rows]))


def counts_of_words() -> dict[str, str]:
    """Give the row of plain counts of words."""
    train, dev = moods()
    counter = CountVectorizer()
    scores = fit(
        counter.fit_transform([row[0] for row in train]), counter.transform([row[0] for row in dev]), train, dev
    )
    return {"model": "counts of words", "mood, words": scores} | dict.fromkeys(COLUMNS[2:], "")


COLUMNS = (
    "model", "mood, words", "mood, last layer", "likeness, words", "likeness, last layer", "copy before it",
    "other before it", "alone",
)  # fmt: skip


@torch.no_grad()
def probe(name: str) -> dict[str, str]:
    """Give the row of a model."""
    folder = locate(name)
    model, tokenizer = load_model(folder).model.eval(), Tokenizer.load(folder)
    train, dev = moods()
    pairs = table(recording.data_folder() / "glue" / "STS-B" / "dev.tsv")
    moods_train, moods_dev = (means(model, tokenizer, [row[0] for row in rows]) for rows in (train, dev))
    first, second = (means(model, tokenizer, [row[column] for row in pairs]) for column in (7, 8))
    scores = [float(row[9]) for row in pairs]
    found = [name]
    for a, b in zip(moods_train, moods_dev, strict=True):
        centre, size = a.mean(0), a.std(0)
        found.append(fit((a - centre) / size, (b - centre) / size, train, dev))
    for a, b in zip(first, second, strict=True):
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        found.append(f"{np.corrcoef(cosines, scores)[0, 1]:.2f}")
    sentences = [tokenizer.encode(row[0]) for row in dev]
    found += [percent(copying(model, tokenizer, sentences, before)) for before in ("copy", "other", "none")]
    return dict(zip(COLUMNS, found, strict=True))


def means(model: Albert, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Any, Any]:
    """Give the mean word embedding and the mean state of the last layer of every text: [N, E], [N, H]."""
    words, states = [], []
    for start in range(0, len(texts), BATCH):
        ids = [tokenizer.encode(text) for text in texts[start : start + BATCH]]
        sequences = [join_segments(tokenizer, part)[0] for part in ids]
        encoded = model(Packed.from_batch(pack(sequences))).states
        states += [part.mean(0) for part in encoded.split([len(sequence) for sequence in sequences])]
        words += [model.encoder.embeddings.word.weight[torch.tensor(part)].mean(0) for part in ids]
    return torch.stack(words).numpy(), torch.stack(states).numpy()


def copying(model: Albert, tokenizer: Tokenizer, sentences: Sequence[Sequence[int]], before: str) -> float:
    """Hide a word in each sentence, put another text before it, and say how often it is found."""
    draw, right, count = random.Random(1), 0, 0
    for number, sentence in enumerate(sentences):
        if not 8 <= len(sentence) <= 60:
            continue
        place = draw.randrange(2, len(sentence) - 2)
        hidden = [*sentence[:place], tokenizer.mask_id, *sentence[place + 1 :]]
        context = {"copy": sentence, "other": sentences[number - 1][:60]}.get(before)
        ids, segments = (
            join_segments(tokenizer, hidden) if context is None else join_segments(tokenizer, context, hidden)
        )
        where = len(ids) - 1 - len(sentence) + place
        encoded = model(Packed.from_batch(pack([ids], [segments])))
        right += int(model.mlm_logits(encoded, torch.tensor([where])).argmax()) == sentence[place]
        count += 1
    return right / count


if __name__ == "__main__":
    main()
