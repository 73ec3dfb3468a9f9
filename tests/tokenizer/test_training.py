"""A vocabulary trained on one's own text: ALBERT's recipe, the same every time, for any language."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece

from albert.errors import DataError, Interrupted, ResourceError, UsageError
from albert.text.documents import Document
from albert.tokenizer import Tokenizer, training
from albert.tokenizer.estimate import estimate_training
from albert.tokenizer.normalisation import Normalisation
from albert.tokenizer.recipe import SYMBOLS, character_coverage, training_lines
from albert.tokenizer.sampling import HELD_OUT_SHARE, Lines, Sample
from albert.tokenizer.training import TrainResult, TrainSettings, train_tokenizer


def run(path: Path, vocab_size: int = 900, **normalisation: bool) -> TrainResult:
    settings = TrainSettings(vocab_size=vocab_size, normalisation=Normalisation(**normalisation))
    return train_tokenizer([path], settings, progress=lambda done, words: None)


def test_the_same_text_gives_the_same_bytes(small: Tokenizer, corpus: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere.txt"
    copy.write_bytes(corpus.read_bytes())
    assert run(copy).tokenizer.model == small.model


def test_the_recipe_is_albert_s(small: Tokenizer) -> None:
    assert tuple(small.pieces[5:13]) == SYMBOLS
    inside = [piece for piece in small.pieces[13:] if any(symbol in piece for symbol in SYMBOLS)]
    assert inside == []
    assert not any("▁" in piece[1:] for piece in small.pieces)


def test_no_piece_is_wasted_on_a_digit_and_a_comma(small: Tokenizer) -> None:
    assert not any(piece[-1] == "," and piece[-2:-1].isdigit() for piece in small.pieces)
    assert small.encode("2010,") == [*small.encode("2010"), small.pieces.index(",")]


def test_sums_of_scores_are_exact_so_ties_are_broken_alike_everywhere(small: Tokenizer) -> None:
    engine = sentencepiece.SentencePieceProcessor(model_proto=small.model)
    scores = [engine.get_score(number) for number in range(small.vocab_size)]
    assert all(score * 1024 == round(score * 1024) for score in scores)
    assert len(set(scores)) > 200
    assert min(scores) > -20
    assert scores[13:] == sorted(scores[13:], reverse=True)


def test_the_text_is_normalised_as_it_will_be_when_encoded(train: Callable[..., Tokenizer]) -> None:
    plain, cased, accents = train(), train(lower_case=False), train(keep_accents=True)
    assert not any(letter.isupper() or letter in "éüêệ" for piece in plain.pieces[5:] for letter in piece)
    assert any(letter.isupper() for piece in cased.pieces[5:] for letter in piece)
    assert any("é" in piece for piece in accents.pieces)
    assert not any("é" in piece for piece in cased.pieces)


def test_every_language_of_the_text_is_covered(train: Callable[..., Tokenizer], declaration: dict[str, str]) -> None:
    tokenizer = train(lower_case=False, keep_accents=True)
    for language, text in declaration.items():
        ids = tokenizer.encode(text)
        assert ids.count(tokenizer.unk_id) <= 0.02 * len(ids), language
        assert len(ids) < 0.6 * len(text) or language in ("zh", "ja"), language  # pieces, not characters


def test_a_single_document_is_trained_on_even_where_its_hash_would_hold_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("albert.tokenizer.sampling.HELD_OUT_SHARE", 1)  # every document
    (tmp_path / "one.txt").write_text("\n".join(f"the quick brown fox number {n} jumps" for n in range(300)))
    result = train_tokenizer([tmp_path / "one.txt"], TrainSettings(vocab_size=60), progress=lambda *_: None)
    assert (result.num_documents, result.num_held_out) == (1, 0)


def test_held_out_documents_are_measured(corpus: Path) -> None:
    result = run(corpus)
    assert result.num_documents == 488
    assert 0 < result.num_held_out < 30
    quality = result.quality
    assert 0 < quality.characters < 10_000  # not the training text
    assert 0.95 < quality.coverage <= 1
    assert 0 <= quality.unknown_rate < 0.05
    assert 1 <= quality.pieces_per_word < 4
    assert 1 < quality.characters_per_piece < 6
    assert result.num_sampled < result.num_characters


def test_one_document_is_measured_on_itself(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("one short document of a few words, and a few words more\n" * 5)
    result = run(path, 34)
    assert (result.num_documents, result.num_held_out) == (1, 0)
    assert result.quality.unknown_rate == 0


def test_too_little_text_names_the_largest_size_that_works(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("the cat sat on the mat, the dog sat on the cat\n")
    with pytest.raises(DataError, match=r"vocab_size=3000: there is too little text .* use at most (\d+)") as caught:
        run(path, 3000)
    largest = int(str(caught.value).split("at most ")[1].split()[0])
    assert run(path, largest).tokenizer.vocab_size == largest


def test_a_vocabulary_that_does_not_hold_the_characters_is_refused(corpus: Path) -> None:
    with pytest.raises(UsageError, match=r"vocab_size=60: the text's characters alone need \d+: use more"):
        run(corpus, 60)
    with pytest.raises(UsageError, match="special pieces and symbols alone need 13"):
        TrainSettings(vocab_size=14)


def test_files_without_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n\n")
    with pytest.raises(DataError, match="no text to train on"):
        run(tmp_path / "empty.txt")
    (tmp_path / "marks.txt").write_text("\u0301\n")
    with pytest.raises(DataError, match="no text to train on"):
        run(tmp_path / "marks.txt")


def test_an_interrupt_ends_sentencepiece_and_leaves_nothing(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    child = f"import os, sys, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    child += "print('Making suffix array', file=sys.stderr, flush=True); time.sleep(60)"
    monkeypatch.setattr(training, "_CHILD", child)

    def interrupt(_: float, words: str) -> None:
        if words == "finding candidates":
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="no tokenizer was written"):
        train_tokenizer([corpus], TrainSettings(), progress=interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert [path.name for path in tmp_path.iterdir()] == ["pid"]


def test_a_killed_child_is_lack_of_memory(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_CHILD", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ResourceError, match="lack of memory"):
        run(corpus)


def test_progress_only_grows(corpus: Path) -> None:
    seen: list[float] = []
    train_tokenizer([corpus], TrainSettings(vocab_size=900), progress=lambda done, words: seen.append(done))
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 0.05
    assert 0.9 < seen[-1] <= 1


def test_a_sample_is_bounded_and_every_line_equally_likely() -> None:
    lines = Lines(limit=5_000)
    for number in range(10_000):
        lines.offer(f"{number:010}")
    kept = [int(line) for line in lines]
    assert (len(kept), lines.size, lines.offered) == (500, 5_000, 100_000)
    assert sum(number < 5_000 for number in kept) == pytest.approx(250, abs=40)
    assert kept != sorted(kept)


def test_copies_of_a_document_are_on_the_same_side(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [f"{rng.random()}\nsecond line" for _ in range(5_000)]
    sample = Sample()
    for text in texts + texts:
        sample.add(Document(text, tmp_path, 1))
    held_out, training_text = set(sample.held_out), set(sample.training)
    assert held_out & training_text == {"second line"}
    assert sample.num_held_out == pytest.approx(len(texts) * 2 / HELD_OUT_SHARE, rel=0.3)


def test_long_lines_are_cut_and_commas_stand_apart_from_digits() -> None:
    lines = training_lines(["Ａ 12, x" + "y" * 2500], Normalisation())
    assert lines[0].startswith('a 12", xyy')
    assert [len(line) for line in lines] == [1000, 1000, 508]


def test_a_script_of_many_characters_leaves_half_the_vocabulary_to_longer_pieces() -> None:
    text = "".join(chr(0x4E00 + number) for number in range(5_000))
    assert character_coverage(["abc" * 100], 1_000) == 0.99995
    assert character_coverage([text, "一" * 400_000], 1_000) == pytest.approx(400_500 / 405_000)
    assert character_coverage([text], 1_000) == 0.98


def test_the_cost_is_estimated_from_the_beginning(corpus: Path) -> None:
    estimate = estimate_training([corpus], TrainSettings())
    assert estimate.num_bytes == corpus.stat().st_size
    assert estimate.num_characters == pytest.approx(len(corpus.read_text(encoding="utf-8")), rel=0.05)
    assert estimate.memory > 80_000_000
    assert estimate.seconds < 60
