"""What a pre-trained encoder knows before it is tuned, in a minute: `python benchmarks/probe.py MODEL…`.

Mood: a logistic regression on mean vectors of 4,000 sentences of SST-2, scored on dev; of the word embeddings alone, of
the last layer, and of plain counts of words. Likeness: the correlation of cosines of mean vectors with STS-B's scores.
Copying: a word is hidden in a sentence; how often is it found when the same sentence stands before it, when another
does, and when none does. A model that can't copy can't compare two texts either. A second table says how far
tasks on pairs can be solved by a regression that sees nothing but how many pieces the two texts share.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import recording
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression

from albert.batch import pack
from albert.model import Albert, Packed
from albert.model.folder import load_model
from albert.model.locate import locate
from albert.tasks.scores import accuracy_f1_scores, regression_scores
from albert.tasks.task import join_segments
from albert.tokenizer import Tokenizer

BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["tiny-en"], help="model folders, or names of shipped models")
    rows = [probe(name) for name in parser.parse_args().models]
    recording.print_table([counts_of_words(), *rows])
    recording.print_table([shared_pieces(Tokenizer.load(locate("tiny-en")))])


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


def shared_pieces(tokenizer: Tokenizer) -> dict[str, str]:
    """Score regressions on five shares of common pieces, on as many rows as the learning table has."""
    glue, nli = recording.data_folder() / "glue", recording.data_folder() / "nli"

    def shares(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        rows = []
        for first, second in pairs:
            a, b = set(tokenizer.encode(first)), set(tokenizer.encode(second))
            both, short, long = len(a & b), min(len(a), len(b)), max(len(a), len(b))
            rows.append([both / len(a | b), both / len(a), both / len(b), both / short, short / long])
        return np.array(rows)

    def columns(rows: Sequence[Sequence[str]], a: int, b: int, target: int) -> tuple[np.ndarray, np.ndarray]:
        return shares([(row[a], row[b]) for row in rows]), np.array([row[target] for row in rows])

    def decide(train: tuple[np.ndarray, np.ndarray], dev: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
        return LogisticRegression(C=10, max_iter=500).fit(*train).predict(dev[0]), dev[1]

    def entailment(name: str, limit: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        rows = [json.loads(line) for line in (nli / f"mnli.subset-{name}.jsonl").read_text().splitlines()[:limit]]
        return columns([(row["premise"], row["hypothesis"], row["label"]) for row in rows], 0, 1, 2)

    (x, y), (dev_x, dev_y) = (columns(table(glue / "STS-B" / f"{part}.tsv"), 7, 8, 9) for part in ("train", "dev"))
    likeness = regression_scores(dev_y.astype(float), LinearRegression().fit(x, y.astype(float)).predict(dev_x))
    found = {"shared pieces only": "", "STS-B": percent(likeness["pearson_spearman"])}
    said, truth = decide(*(columns(table(glue / "MRPC" / f"{part}.tsv"), 3, 4, 0) for part in ("train", "dev")))
    found["MRPC"] = percent(accuracy_f1_scores(truth.astype(int), said.astype(int))["accuracy_f1"])
    said, truth = decide(*(columns(table(glue / "RTE" / f"{part}.tsv"), 1, 2, 3) for part in ("train", "dev")))
    found["RTE"] = percent(np.mean(said == truth))
    said, truth = decide(entailment("train", 3_000), entailment("dev"))
    return found | {"MNLI": percent(np.mean(said == truth))}


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
