"""What a pre-trained encoder knows before it is tuned, in a few minutes: `python benchmarks/probe.py MODEL…`.

The fixed probe that decides between recipes. All on frozen states, beside a bag of words (TF-IDF with a linear model):

- SST-2: logistic regression on mean vectors of 10,000 sentences (of the word embeddings, of the last layer, of both
  with the middle layer), scored on dev.
- STS-B: Spearman of the cosine of mean vectors, which needs no labels, and of a ridge regression on |u-v| and u·v.
- MNLI: logistic regression on the states of 9,000 pairs read together, scored on 4,000 of the matched dev set.
- Copying: a word is hidden in a sentence; how often is it found when the same sentence stands before it, when another
  does, and when none does. A model that can't copy can't compare two texts either.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import recording
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from albert.batch import pack
from albert.labelled.catalog import DataRequest, open_data
from albert.model import Albert
from albert.model.folder import load_model
from albert.model.locate import locate
from albert.tasks.bag_of_words import bag_of_words
from albert.tasks.task import join_segments
from albert.tokenizer import Tokenizer

BATCH = 64
SENTENCES, PAIRS_SCORED = 10_000, 4_000
COLUMNS = (
    "model", "SST-2 words", "SST-2 last", "SST-2 all", "STS-B cosine words", "STS-B cosine last", "STS-B ridge",
    "MNLI", "copy before it", "other before it", "alone",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["tiny-en"], help="model folders, or names of shipped models")
    rows = [probe(name) for name in parser.parse_args().models]
    recording.print_table([words_only(), *rows])


class Data:
    """The texts of the probe."""

    def __init__(self) -> None:
        glue, nli = recording.data_folder() / "glue", recording.data_folder() / "nli"
        requests = {
            "sst-2": DataRequest(glue / "SST-2"),
            "sts-b": DataRequest(glue / "STS-B"),
            "mnli": DataRequest(nli / "mnli.subset-train.jsonl", dev=nli / "mnli.dev-matched.jsonl"),
        }
        self.task, self.train, self.dev = {}, {}, {}
        for name, request in requests.items():
            opened = open_data(request)
            self.task[name], self.train[name] = opened.task, list(opened.splits.train)
            self.dev[name] = list(next(iter(opened.splits.dev.values())))
        self.train["sst-2"] = random.Random(0).sample(self.train["sst-2"], SENTENCES)
        self.dev["mnli"] = self.dev["mnli"][:PAIRS_SCORED]

    def targets(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets of both parts."""
        return tuple(np.array([example.target for example in part[name]]) for part in (self.train, self.dev))  # type: ignore[return-value]


def words_only() -> dict[str, str]:
    """Return the row of the bag of words."""
    data, row = Data(), dict.fromkeys(COLUMNS, "")
    for name, column, score in (
        ("sst-2", "SST-2 words", "accuracy"),
        ("sts-b", "STS-B ridge", "spearman"),
        ("mnli", "MNLI", "accuracy"),
    ):
        decided = bag_of_words(data.task[name], data.train[name], data.dev[name])
        assert decided is not None
        row[column] = _form(data.task[name].score(data.dev[name], decided)[score], score)
    return row | {"model": "bag of words"}


def _form(value: float, score: str = "accuracy") -> str:
    return f"{value:.3f}" if score == "spearman" else f"{100 * value:.1f}%"


@torch.no_grad()
def probe(name: str) -> dict[str, str]:
    """Return the row of a model."""
    folder, data = locate(name), Data()
    model, tokenizer = load_model(folder).model.eval(), Tokenizer.load(folder)
    sst = [mean_vectors(model, tokenizer, [e.text for e in part["sst-2"]]) for part in (data.train, data.dev)]
    row = {"model": name}
    for column, which in (("SST-2 words", ("words",)), ("SST-2 last", ("last",)), ("SST-2 all", tuple(sst[0]))):
        train, dev = (np.hstack([vectors[kind] for kind in which]) for vectors in sst)
        row[column] = _form(classified(train, dev, *data.targets("sst-2"), strength=0.01))
    row |= likeness(model, tokenizer, data)
    train, dev = (
        joint_vectors(model, tokenizer, [(e.text, e.pair) for e in part["mnli"]]) for part in (data.train, data.dev)
    )
    row["MNLI"] = _form(classified(train, dev, *data.targets("mnli"), strength=0.003))
    sentences = [tokenizer.encode(example.text) for example in data.dev["sst-2"]]
    for before, column in (("copy", "copy before it"), ("other", "other before it"), ("none", "alone")):
        row[column] = _form(copying(model, tokenizer, sentences, before))
    return {column: row[column] for column in COLUMNS}


def classified(
    train: np.ndarray, dev: np.ndarray, truth: np.ndarray, dev_truth: np.ndarray, *, strength: float
) -> float:
    """Return the accuracy of a logistic regression."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=300))
    return float(model.fit(train, truth).score(dev, dev_truth))


def likeness(model: Albert, tokenizer: Tokenizer, data: Data) -> dict[str, str]:
    """Return the correlations with STS-B's scores."""
    (first, second), (dev_first, dev_second) = (
        [mean_vectors(model, tokenizer, [getattr(example, side) for example in part]) for side in ("text", "pair")]
        for part in (data.train["sts-b"], data.dev["sts-b"])
    )
    truth, dev_truth = data.targets("sts-b")
    row = {}
    for kind in ("words", "last"):
        centre = np.concatenate([first[kind], second[kind]]).mean(axis=0)
        u, v = dev_first[kind] - centre, dev_second[kind] - centre
        cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
        row[f"STS-B cosine {kind}"] = _form(spearmanr(cosines, dev_truth)[0], "spearman")

    def compared(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> np.ndarray:
        return np.hstack([abs(a["last"] - b["last"]), a["last"] * b["last"], abs(a["words"] - b["words"])])

    ridge = make_pipeline(StandardScaler(), RidgeCV([100, 1_000, 10_000])).fit(compared(first, second), truth)
    guesses = ridge.predict(compared(dev_first, dev_second))
    return row | {"STS-B ridge": _form(spearmanr(guesses, dev_truth)[0], "spearman")}


def batches(sequences: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the numbers of sequences of like length."""
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def mean_vectors(model: Albert, tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Return mean vectors of every text: of its words [N, E], of the middle layer and of the last [N, H]."""
    sequences = [join_segments(tokenizer, tokenizer.encode(text)[:126])[0] for text in texts]
    found: dict[str, list[Any]] = {kind: [None] * len(texts) for kind in ("words", "middle", "last")}
    for numbers in batches(sequences):
        chosen = [sequences[i] for i in numbers]
        encoded = model(pack(chosen), all_layers=True)
        words = model.encoder.embeddings.word(torch.tensor([token for sequence in chosen for token in sequence]))
        states = {"words": words, "middle": encoded.layers[(len(encoded.layers) - 1) // 2], "last": encoded.states}
        for kind, tokens in states.items():
            for i, part in zip(numbers, tokens.split([len(sequence) for sequence in chosen]), strict=True):
                found[kind][i] = part.mean(0).numpy()
    return {kind: np.stack(vectors) for kind, vectors in found.items()}


def joint_vectors(model: Albert, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return what the last layer says of each pair: both means, their difference and product, [CLS]."""
    joined = [join_segments(tokenizer, tokenizer.encode(a)[:80], tokenizer.encode(b)[:45]) for a, b in pairs]
    found: list[Any] = [None] * len(pairs)
    for numbers in batches([ids for ids, _ in joined]):
        states = model(pack([joined[i][0] for i in numbers], [joined[i][1] for i in numbers])).states
        for i, part in zip(numbers, states.split([len(joined[i][0]) for i in numbers]), strict=True):
            border = len(part) - sum(joined[i][1])
            a, b = part[:border].mean(0), part[border:].mean(0)
            found[i] = torch.cat([a, b, (a - b).abs(), a * b, part[0]]).numpy()
    return np.stack(found)


def copying(model: Albert, tokenizer: Tokenizer, sentences: Sequence[Sequence[int]], before: str) -> float:
    """Hide a word in each sentence, put another text before it, and return how often it is found."""
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
        encoded = model(pack([ids], [segments]))
        right += int(model.mlm_logits(encoded, torch.tensor([where])).argmax()) == sentence[place]
        count += 1
    return right / count


if __name__ == "__main__":
    main()
