"""Pre-training with a teacher: its vectors, what is learnt from them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from albert.batch import PretrainingBatch, pack
from albert.data.store import TokenStore
from albert.errors import AlbertError, UsageError
from albert.model import Packed, new_model
from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded
from albert.model.folder import save_model
from albert.pretrain import Pretrained, pretrain
from albert.pretrain.lessons import Directions, Lessons, Segments
from albert.pretrain.settings import PretrainSettings
from albert.pretrain.teacher import LONGEST, Reading, Teacher, open_teacher, taught_words, word_beginnings, words_of
from albert.settings import read_settings
from albert.tasks.task import join_segments
from albert.tokenizer import Tokenizer
from albert.train.checkpoint import newest_intact
from albert.train.loop import Progress

SMALL = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 2, "data.max_length": 64, "train.steps": 12, "train.batch_size": 8, "train.log_every": 2,
    "train.save_every": 4, "train.eval_every": 100, "optimizer.warmup_steps": 2, "optimizer.lr": 0.01,
}  # fmt: skip
CPU = torch.device("cpu")


def settings(**changes: Any) -> PretrainSettings:
    return read_settings(
        PretrainSettings, defaults=SMALL | {name.replace("__", "."): value for name, value in changes.items()}
    )


@pytest.fixture(autouse=True)
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find directions from few texts, and spend next to no time on measuring time."""
    monkeypatch.setattr("albert.pretrain.lessons.SAMPLE", 64)
    monkeypatch.setattr("albert.pretrain.pace.BUDGET", 0.2)


@pytest.fixture(scope="session")
def albert_teacher(store_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write an ALBERT with large random weights: texts of other words have other vectors."""
    store = TokenStore.open(store_folder)
    config = AlbertConfig(
        vocab_size=store.tokenizer.vocab_size, embedding_size=24, hidden_size=48, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=80, initializer_range=0.2,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("teacher") / "albert"
    save_model(new_model(config, seed=3), folder, tokenizer=store.tokenizer)
    return str(folder)


def taught(store: TokenStore, out: Path, teacher: str, **changes: Any) -> Pretrained:
    result = pretrain(store, "tiny", out, settings=settings(teacher__model=teacher, **changes))
    assert isinstance(result, Pretrained)
    return result


def final(out: Path) -> dict[str, torch.Tensor]:
    path = newest_intact(out / "checkpoints")
    assert path is not None
    return load_file(path / "weights.safetensors")


def test_segments_are_unmasked_and_know_their_texts() -> None:
    batch = PretrainingBatch(
        token_ids=np.array([2, 4, 11, 3, 4, 3, 2, 12, 3]),
        segment_ids=np.array([0, 0, 0, 0, 1, 1, 0, 0, 0]),
        lengths=np.array([6, 3]),
        masked_positions=np.array([1, 4]),
        masked_labels=np.array([10, 20]),
        order_labels=np.array([0, -1]),
    )
    found = Segments.of(batch)
    assert found.pieces == [[2, 10, 11, 3], [20, 3], [2, 12, 3]]
    assert found.of_token.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2]
    assert found.text.tolist() == [0, 0, 1]
    assert batch.token_ids[1] == 4, "the batch itself stays masked"


def test_vectors_do_not_depend_on_the_other_texts(albert_teacher: str) -> None:
    teacher = open_teacher(albert_teacher, CPU)
    texts = ["the cat sat on the old ship.", "rain", "her sister wrote a long letter to nobody " * 40, "coal and bread"]
    together = teacher.vectors(texts)
    assert torch.allclose(together.norm(dim=1), torch.ones(4), atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        torch.testing.assert_close(teacher.vectors([text])[0], vector, rtol=0, atol=1e-5)


def bert_teacher(tmp_path: Path) -> Path:
    """Write a small BERT with random weights, as transformers does."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "rain", "##y", "old", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    folder = tmp_path / "bert"
    transformers.BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        initializer_range=0.3,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def test_a_bert_teacher_gives_the_vectors_of_sentence_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = bert_teacher(tmp_path)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    oracle = transformers.BertModel.from_pretrained(folder).eval()
    texts = ["The cat sat.", "rainy old cat", "the " * 300]
    asked = tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
    with torch.no_grad():
        states, mask = oracle(**asked).last_hidden_state, asked["attention_mask"].unsqueeze(-1)
    expected = F.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    torch.testing.assert_close(open_teacher(str(folder), CPU).vectors(texts), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_a_student_that_says_what_its_teacher_says_has_no_loss(albert_teacher: str, store: TokenStore) -> None:
    teacher = open_teacher(albert_teacher, CPU)
    ids = store.tokenizer.encode("the cat sat on the ship.")
    text = [store.tokenizer.cls_id, *ids, store.tokenizer.sep_id]
    plain, none = pack([text]), np.array([], dtype=np.int64)
    batch = PretrainingBatch(plain.token_ids, plain.segment_ids, plain.lengths, none, none, np.array([-1]))
    packed = Packed.from_batch(batch)
    encoded, turn = teacher.model.encoder(packed), torch.linalg.qr(torch.randn(48, 48))[0]
    lessons = Lessons(teacher, Directions(torch.eye(48)), store.tokenizer)
    half = 1 - F.cosine_similarity(encoded.states[:1], encoded.states.mean(0, keepdim=True)).item()
    found = lessons.losses(batch, encoded, packed, count=1)
    assert found.vectors.item() == pytest.approx(half / 2, abs=1e-5), "[CLS] alone"
    assert (found.pairs.item(), found.words.item()) == (0.0, 0.0), "not asked"
    assert lessons.losses(batch, encoded, packed, count=2).vectors.item() == pytest.approx(half / 4, abs=1e-5)
    turned = Lessons(teacher, Directions(turn), store.tokenizer)
    assert turned.losses(batch, encoded, packed, count=1).vectors.item() > half / 2 + 0.1


@torch.no_grad()
def test_how_like_two_segments_are_is_the_teachers_cosine_of_the_texts_that_it_reads(
    albert_teacher: str, store: TokenStore
) -> None:
    teacher, tokenizer = open_teacher(albert_teacher, CPU), store.tokenizer
    texts = [("the cat sat.", "the cat sat on the ship."), ("rain", ""), ("her letter", "a long winter")]
    pairs = [[tokenizer.encode(one) for one in both if one] for both in texts]
    ids = [join_segments(tokenizer, *own) for own in pairs]
    plain, none = pack([own for own, _ in ids], [kinds for _, kinds in ids]), np.array([], dtype=np.int64)
    batch = PretrainingBatch(plain.token_ids, plain.segment_ids, plain.lengths, none, none, np.array([0, -1, 1]))
    packed = Packed.from_batch(batch)
    encoded = teacher.model.encoder(packed)
    segments = Segments.of(batch)
    vectors = teacher.vectors([tokenizer.decode(own) for own in segments.pieces])
    cosines = [float(vectors[0] @ vectors[1]), float(vectors[3] @ vectors[4])]
    right = torch.logit(torch.tensor([cosines[0], 0.5, cosines[1]]).clamp(1e-6, 1 - 1e-6))
    lessons = Lessons(teacher, Directions(torch.eye(48)), tokenizer)
    alone = lessons.losses(batch, encoded, packed, count=3).vectors.item()
    said = lessons.losses(batch, encoded, packed, likeness=right, count=3)
    assert (said.vectors.item(), said.pairs.item()) == pytest.approx((alone, 0.0), abs=1e-5)
    assert lessons.losses(batch, encoded, packed, likeness=right - 3, count=3).pairs.item() > 0.1
    elsewhere = lessons.losses(batch, encoded, packed, likeness=right + torch.tensor([0.0, 9.0, 0.0]), count=3)
    assert elsewhere.pairs.item() == pytest.approx(0, abs=1e-5)

    some = Lessons(teacher, Directions(torch.eye(48)), tokenizer, share=0.5)  # the first two texts: one is a pair
    assert some.taught(batch) == 2
    last_wrong = right - torch.tensor([0.0, 0.0, 9.0])
    not_read = some.losses(batch, encoded, packed, likeness=last_wrong, count=2)
    assert not_read.pairs.item() == pytest.approx(0, abs=1e-5)
    first = PretrainingBatch(
        batch.token_ids[: batch.lengths[:2].sum()], batch.segment_ids[: batch.lengths[:2].sum()], batch.lengths[:2],
        none, none, np.array([0, -1]),
    )  # fmt: skip
    packed_first = Packed.from_batch(first)
    expected = lessons.losses(first, teacher.model.encoder(packed_first), packed_first, count=2).vectors
    assert not_read.vectors.item() == pytest.approx(expected.item(), abs=1e-5)


@torch.no_grad()
def test_words_are_those_of_white_space_whoever_divides_them(albert_teacher: str, tmp_path: Path) -> None:
    text = "it's un-Believable, café (née 3,000) x ."
    ours = open_teacher(albert_teacher, CPU)
    begins = word_beginnings(Tokenizer.load(Path(albert_teacher)))
    assert words_of(np.array([-1, 1, 0, 0, 1, 1, -1])).tolist() == [-1, 0, 0, 0, 1, 2, -1]
    assert words_of(np.array([0, 0, 1])).tolist() == [0, 0, 1], "cut inside a word"
    assert words_of(np.array([-1, -1])).tolist() == [-1, -1], "no word at all"
    assert set(begins.tolist()) == {-1, 0, 1}
    for teacher in (ours, open_teacher(str(bert_teacher(tmp_path)), CPU)):
        reading = teacher.read([text, "x", text], words=True)
        assert reading.first.tolist() == [0, 7, 8, 15]
        assert reading.words.any(dim=1).all()
        torch.testing.assert_close(reading.words[:7], reading.words[8:], rtol=0, atol=1e-5)
        alone = teacher.read(["x"], words=True).words[0]
        torch.testing.assert_close(reading.words[7], alone, rtol=0, atol=1e-5)
        assert teacher.read([text]).words.shape == (0, teacher.width), "not asked"


@torch.no_grad()
def test_words_are_learnt_from_the_teachers_layer_on_the_way(albert_teacher: str, store: TokenStore) -> None:
    teacher, tokenizer = open_teacher(albert_teacher, CPU), store.tokenizer
    pairs = [("the cat sat.", "the cat sat on the ship."), ("her letter", "a long winter")]
    ids = [join_segments(tokenizer, *(tokenizer.encode(one) for one in both)) for both in pairs]
    plain = pack([own for own, _ in ids], [kinds for _, kinds in ids])
    none = np.array([], dtype=np.int64)
    batch = PretrainingBatch(plain.token_ids, plain.segment_ids, plain.lengths, none, none, np.array([0, 1]))
    packed, segments = Packed.from_batch(batch), Segments.of(batch)
    reading = teacher.read([tokenizer.decode(own) for own in segments.pieces], words=True)
    of_token = segments.words(word_beginnings(tokenizer), reading.first)
    assert sorted(set(of_token.tolist())) == list(range(-1, len(reading.words))), "every word, and special tokens"

    states = torch.randn(len(of_token), 48, generator=torch.Generator().manual_seed(0))
    taught = states.clone()
    taught[torch.from_numpy(of_token >= 0)] = reading.words[torch.from_numpy(of_token[of_token >= 0])]
    identity = torch.cat([torch.eye(48), torch.zeros(1, 48)])
    lessons = Lessons(teacher, Directions(torch.eye(48), identity), tokenizer)
    on_its_way = Encoded(states, None, (taught, states))  # of two layers, the first
    assert lessons.losses(batch, on_its_way, packed, count=2).words.item() == pytest.approx(0, abs=1e-5)
    at_the_end = Encoded(states, None, (states, taught))
    assert lessons.losses(batch, at_the_end, packed, count=2).words.item() > 0.5
    centre = reading.words.mean(dim=0)
    moved = Lessons(teacher, Directions(torch.eye(48), torch.cat([torch.eye(48), -centre[None]])), tokenizer)
    shifted = Encoded(states, None, (taught - centre, states))
    assert moved.losses(batch, shifted, packed, count=2).words.item() == pytest.approx(0, abs=1e-4)
    other = Segments([segments.pieces[0][:-2], *segments.pieces[1:]], segments.of_token, segments.text)
    assert (other.words(word_beginnings(tokenizer), reading.first) >= 0).sum() < (of_token >= 0).sum(), "left out"


def test_a_model_that_goes_on_keeps_what_its_vectors_mean(
    albert_teacher: str, store: TokenStore, tmp_path: Path
) -> None:
    first = taught(store, tmp_path / "first", albert_teacher, train__steps=60)
    asked = settings(teacher__model=albert_teacher, teacher__share=0.5, teacher__pairs=1.0, train__steps=4)
    again = pretrain(store, str(first.folder / "model"), tmp_path / "second", settings=asked)
    anew = taught(store, tmp_path / "anew", albert_teacher, teacher__share=0.5, teacher__pairs=1.0, train__steps=4)
    assert isinstance(again, Pretrained)
    began = {}
    for out in (first.folder, again.folder, anew.folder):
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        began[out.name] = [line for line in lines if "teacher_loss" in line]
    assert began["second"][0]["teacher_loss"] < 1.3 * began["first"][-1]["teacher_loss"]
    assert began["second"][0]["teacher_loss"] < 0.8 * began["anew"][0]["teacher_loss"]
    assert "pairs_loss" in began["second"][0]
    assert "pairs_loss" not in began["first"][0]


def test_a_student_learns_from_its_teacher_and_resumes_bit_for_bit(
    albert_teacher: str, store: TokenStore, tmp_path: Path
) -> None:
    changes = {
        "train__steps": 150,
        "model_init__words": "teacher",
        "data__alone": 0.3,
        "data__overlap": 0.2,
        "teacher__pairs": 2.0,
        "teacher__words": 2.0,
    }
    taught(store, tmp_path / "whole", albert_teacher, **changes)
    lines = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["teacher_loss"] for line in lines if "teacher_loss" in line]
    assert losses[-1] < 0.6 * losses[0]
    likeness = [line["pairs_loss"] for line in lines if "pairs_loss" in line]
    assert likeness[-1] < 0.6 * likeness[0]
    words = [line["words_loss"] for line in lines if "words_loss" in line]
    assert words[-1] < 0.9 * words[0]

    def stop(progress: Progress) -> None:
        if progress.step >= 22:
            raise KeyboardInterrupt

    asked = settings(teacher__model=albert_teacher, **changes)
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "cut", settings=asked, observe=stop)
    assert taught(store, tmp_path / "cut", albert_teacher, **changes).trained.resumed_from == 20
    first, second = final(tmp_path / "whole"), final(tmp_path / "cut")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_plan_counts_the_teacher(
    albert_teacher: str, store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    whole = Teacher.read

    def watched(self: Teacher, texts: Any, **asked: Any) -> Reading:
        read.append(len(texts))
        return whole(self, texts, **asked)

    monkeypatch.setattr(Teacher, "read", watched)
    plan = pretrain(store, "tiny", tmp_path / "run", settings=settings(teacher__model=albert_teacher), dry_run=True)
    assert not isinstance(plan, Pretrained)
    assert read, "the steps that are timed have the teacher in them"
    assert not (tmp_path / "run").exists()


def test_words_of_one_meaning_to_the_teacher_start_alike(store: TokenStore) -> None:
    class Meanings(Teacher):
        width = 3  # type: ignore[assignment]

        def __init__(self) -> None:
            pass

        def vectors(self, texts: Any) -> torch.Tensor:
            kinds = [{"cat": 0, "dog": 0, "rain": 1, "winter": 1}.get(text, 2) for text in texts]
            return torch.eye(3)[torch.tensor(kinds)]

    tokenizer = store.tokenizer
    counted = torch.randn(tokenizer.vocab_size, 16, generator=torch.Generator().manual_seed(0))
    unseen = tokenizer.vocab_size - 1
    counted[unseen] = 0
    words = taught_words(Meanings(), tokenizer, counted)
    cat, dog, rain = (words[tokenizer.encode(word)[0]] for word in ("cat", "dog", "rain"))
    assert words.shape == counted.shape
    assert F.cosine_similarity(cat, dog, dim=0) > F.cosine_similarity(cat, rain, dim=0) + 0.5
    assert not words[unseen].any()


def test_another_teacher_is_another_run(albert_teacher: str, store: TokenStore, tmp_path: Path) -> None:
    taught(store, tmp_path / "run", albert_teacher)
    weights = Path(albert_teacher) / "model.safetensors"
    kept = weights.read_bytes()
    try:
        weights.write_bytes(kept[:-4] + b"\0\0\0\0")
        with pytest.raises(UsageError, match="teacher"):
            taught(store, tmp_path / "run", albert_teacher)
    finally:
        weights.write_bytes(kept)


def test_what_is_missing_is_named(store: TokenStore, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"set teacher\.model"):
        pretrain(store, "tiny", tmp_path / "run", settings=settings(model_init__words="teacher"))
    with pytest.raises(AlbertError, match="nowhere"):
        taught(store, tmp_path / "run", str(tmp_path / "nowhere"))
    bert = tmp_path / "bert"
    bert.mkdir()
    (bert / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(AlbertError, match=r"tokenizer\.json"):
        taught(store, tmp_path / "run", str(bert))
