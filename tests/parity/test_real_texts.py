"""Every engine against transformers on real texts, with a head on trained weights: MNLI, SST-2 and SQuAD.

Both get the same ids. transformers pads its batches, we pack them. `make test-engines` runs it with OpenVINO too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from albert.batch import Said, Wanted
from albert.inference.choose_engine import NEEDS, installed, open_engine
from albert.inference.engine import Engine
from albert.inference.predictor import length_batches
from albert.model.folder import load_model, save_model
from albert.model.locate import locate
from albert.tasks.task import Feature, batch_of, join_segments, truncate_pair
from albert.tokenizer import Tokenizer

pytestmark = pytest.mark.oracle
TEXTS, ALONE, PADDED, LONGEST = 128, 24, 16, 384
HEADS: dict[str, tuple[str, Wanted]] = {
    "MNLI": ("classifier", {"classifier": "class"}),
    "SST-2": ("classifier", {"classifier": "class"}),
    "SQuAD": ("span", {"span": "tokens"}),
}


def pairs_of(kind: str, data: Path) -> Iterator[tuple[str, str | None]]:
    match kind:
        case "MNLI":
            lines = (data / "nli/mnli.dev-matched.jsonl").read_text().splitlines()
            yield from ((row["premise"], row["hypothesis"]) for row in map(json.loads, lines))
        case "SST-2":
            yield from (
                (row.split("\t")[0], None) for row in (data / "glue/SST-2/dev.tsv").read_text().splitlines()[1:]
            )
        case _:
            articles = json.loads((data / "squad/dev-v1.1.json").read_text())["data"]
            paragraphs = (paragraph for article in articles for paragraph in article["paragraphs"])
            yield from ((paragraph["qas"][0]["question"], paragraph["context"]) for paragraph in paragraphs)


def features_of(kind: str, data: Path) -> list[Feature]:
    """Encode every so-many-th text, so that they are of all lengths."""
    tokenizer, found = Tokenizer.load(locate("tiny-en")), list(pairs_of(kind, data))
    features = []
    for first, second in islice(found, 0, None, max(1, len(found) // TEXTS)):
        ids = tokenizer.encode(first)[: LONGEST - 3]
        parts = (ids,) if second is None else truncate_pair(ids, tokenizer.encode(second), room=LONGEST - 3)
        features.append(Feature(*join_segments(tokenizer, *parts)))
    return features[:TEXTS]


@cache
def folder_of(kind: str, root: Path) -> Path:
    """Write tiny-en with a new head whose answers are not near zero."""
    head, _ = HEADS[kind]
    folder = root / head
    if not folder.exists():
        config = load_model(locate("tiny-en")).model.config
        config = config.with_settings({"labels": ("a", "b", "c")} if head == "classifier" else {})
        model = load_model(locate("tiny-en"), [head], config=config, seed=5).model
        with torch.no_grad():
            for parameter in model.heads.parameters():
                parameter.mul_(10)
        save_model(model, folder)
    return folder


@torch.no_grad()
def transformers_says(kind: str, folder: Path, features: Sequence[Feature]) -> list[np.ndarray]:
    """Run transformers on padded batches: [labels] of a text, or [tokens, 2]."""
    name = "AlbertForQuestionAnswering" if kind == "SQuAD" else "AlbertForSequenceClassification"
    model = getattr(transformers, name).from_pretrained(folder).eval()
    said: list[np.ndarray] = []
    for first in range(0, len(features), PADDED):
        own = features[first : first + PADDED]
        longest = max(len(feature.token_ids) for feature in own)
        rows = [list(feature.token_ids) + [0] * (longest - len(feature.token_ids)) for feature in own]
        segments = [list(feature.segment_ids) + [0] * (longest - len(feature.segment_ids)) for feature in own]
        mask = [[1] * len(feature.token_ids) + [0] * (longest - len(feature.token_ids)) for feature in own]
        found = model(torch.tensor(rows), attention_mask=torch.tensor(mask), token_type_ids=torch.tensor(segments))
        if kind != "SQuAD":
            said += list(found.logits.numpy())
            continue
        spans = torch.stack([found.start_logits, found.end_logits], dim=-1).numpy()
        said += [row[: len(feature.token_ids)] for row, feature in zip(spans, own, strict=True)]
    return said


def run(engine: Engine, features: Sequence[Feature], wanted: Wanted, *, tokens: int) -> list[Said]:
    said: list[Said] = [{}] * len(features)
    for chosen in length_batches(features, tokens=tokens):
        for place, own in zip(chosen, engine.run(batch_of([features[i] for i in chosen]), wanted), strict=True):
            said[place] = own
    return said


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("name", NEEDS)
def test_real_texts_get_the_answers_of_transformers(
    name: str, kind: str, real_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not installed(name):
        pytest.skip(f"{name} is not installed: pip install 'albert-lite[{name}]'")
    folder = folder_of(kind, tmp_path_factory.getbasetemp())
    features, (head, wanted) = features_of(kind, real_data), HEADS[kind]
    engine = open_engine(load_model(folder).model, engine=name)
    together = run(engine, features, wanted, tokens=4096)
    expected = transformers_says(kind, folder, features)
    spread = max(float(np.abs(theirs).max()) for theirs in expected)
    assert spread > 0.5, "answers near zero would agree anyway"
    worst = max(float(np.abs(ours[head][0] - theirs).max()) for ours, theirs in zip(together, expected, strict=True))
    alone = run(engine, features[:ALONE], wanted, tokens=1)
    apart = max(float(np.abs(a[head][0] - b[head][0]).max()) for a, b in zip(alone, together[:ALONE], strict=True))
    print(
        f"{name}, {kind}: {len(features)} texts, up to {spread:.1f}; {worst:.1e} from transformers, {apart:.1e} alone"
    )
    assert worst <= 1e-4
    # Answers reach 20 here, as the head is ten times a real one's: single precision has steps of 2e-6 there.
    assert apart <= 1e-5 * max(1.0, spread / 10)
