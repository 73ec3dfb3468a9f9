"""A tokenizer loads, saves, encodes and decodes, and refuses what is none."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from albert.errors import ModelError
from albert.tokenizer import Tokenizer
from albert.tokenizer.commas import MARKER
from albert.tokenizer.normalisation import Normalisation

TEXTS = st.text(st.characters(blacklist_categories=("Cs",)) | st.sampled_from("abc 12,(.\u0301漢"), max_size=60)


def slow_ids(model: bytes, text: str) -> list[int]:
    """Do what transformers' slow tokenizer does after its normalisation, piece by piece."""
    engine = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = []
    for piece in engine.encode(text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            again = engine.encode(piece[:-1].replace(MARKER, ""), out_type=str)
            if piece[0] != MARKER and again[0][0] == MARKER:
                again = again[1:] if len(again[0]) == 1 else [again[0][1:], *again[1:]]
            pieces += [*again, piece[-1]]
        else:
            pieces.append(piece)
    return [engine.piece_to_id(piece) for piece in pieces]


@pytest.fixture(scope="module")
def with_commas(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Give a vocabulary that others trained: it has pieces that end in a digit and a comma."""
    prefix = tmp_path_factory.mktemp("commas") / "spiece"
    sentencepiece.SentencePieceTrainer.Train(
        input=str(corpus), model_prefix=str(prefix), vocab_size=900, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"], character_coverage=1.0, minloglevel=2, split_by_number=False,
    )  # fmt: skip
    tokenizer = Tokenizer.load(prefix.with_suffix(".model"))
    assert sum(piece[-1] == "," and piece[-2:-1].isdigit() for piece in tokenizer.pieces) > 5
    return tokenizer


@settings(max_examples=300, deadline=None)
@given(text=st.text("0123456789, (ab", max_size=40))
def test_the_digit_comma_rule_is_the_reference(with_commas: Tokenizer, text: str) -> None:
    assert with_commas.encode(text) == slow_ids(with_commas.model, with_commas.normalisation(text))
    assert with_commas.encode_with_offsets(text).ids == with_commas.encode(text)


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(TEXTS, max_size=5))
def test_many_texts_get_the_ids_of_each(small: Tokenizer, texts: list[str]) -> None:
    assert small.encode_many(texts) == [small.encode(text) for text in texts]
    assert small.encode_many(texts) == [slow_ids(small.model, small.normalisation(text)) for text in texts]


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(st.sampled_from(["[MASK]", "[CLS]", "[SEP]", "<pad>", "＜pad＞", " ", "x", "[", "漢"])))
@pytest.mark.parametrize("lower_case", [True, False])
def test_plain_text_never_becomes_a_special_token(small: Tokenizer, pieces: list[str], lower_case: bool) -> None:
    tokenizer = Tokenizer(small.model, Normalisation(lower_case=lower_case))
    special = {tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id}
    text = "".join(pieces)
    assert special.isdisjoint(tokenizer.encode(text))
    assert special.isdisjoint(tokenizer.encode_with_offsets(text).ids)


def test_characters_without_pieces_that_spell_a_special_token_stay_unknown(small: Tokenizer) -> None:
    cased = Tokenizer(small.model, Normalisation(lower_case=False))
    assert "[" not in cased.pieces
    assert "M" not in cased.pieces
    assert cased.encode("[MASK]") == cased.encode_with_offsets("[MASK]").ids == [cased.pieces.index("▁"), cased.unk_id]


def test_the_special_pieces_are_the_first_five(small: Tokenizer) -> None:
    assert small.pieces[:5] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    ids = [small.pad_id, small.unk_id, small.cls_id, small.sep_id, small.mask_id]
    assert ids == [0, 1, 2, 3, 4]
    assert len(small.pieces) == small.vocab_size == 900


def test_the_official_vocabulary_gives_the_published_ids(official: Tokenizer) -> None:
    assert official.encode("hello, world!") == [10975, 15, 126, 187]
    assert official.decode([2, 10975, 15, 126, 187, 3]) == "hello, world!"


def test_decoding_gives_the_normalised_text(small: Tokenizer) -> None:
    text = "Bacodi (Fuga), 12, 2010,"
    assert small.decode(small.encode(text)) == text.lower() == small.normalise(text)


def test_text_of_an_empty_or_blank_string_has_no_ids(small: Tokenizer) -> None:
    for text in ("", "  \n\t ", "\u0301", "\x01"):
        assert small.encode(text) == small.encode_with_offsets(text).ids == []
    assert small.encode_many([]) == []


def test_a_copy_in_another_process_is_the_same(small: Tokenizer) -> None:
    copy = pickle.loads(pickle.dumps(small))
    assert copy.fingerprint == small.fingerprint
    assert copy.encode("bacodi 12,") == small.encode("bacodi 12,")


def test_saving_and_loading_changes_nothing(train: Callable[..., Tokenizer], tmp_path: Path) -> None:
    for lower_case, keep_accents in [(True, False), (False, True)]:
        tokenizer = train(lower_case=lower_case, keep_accents=keep_accents)
        tokenizer.save(tmp_path)
        loaded = Tokenizer.load(tmp_path)
        assert loaded.model == tokenizer.model == (tmp_path / "spiece.model").read_bytes()
        assert loaded.normalisation == tokenizer.normalisation
        assert loaded.fingerprint == tokenizer.fingerprint == Tokenizer.load(tmp_path / "spiece.model").fingerprint


@pytest.mark.parametrize("vocabulary", ["small", "with_commas", "official"])
def test_a_folder_without_spiece_model_is_rebuilt_from_its_tokenizer_json(
    vocabulary: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(vocabulary)
    tokenizer.save(tmp_path)
    (tmp_path / "spiece.model").unlink()
    rebuilt = Tokenizer.load(tmp_path)
    assert rebuilt.fingerprint == tokenizer.fingerprint
    for text in ("Bacodi (fuga) 12, 1,234", "a\u200db ～ ½\u0e33 ﬁ", "[MASK] ☃"):
        assert rebuilt.encode_with_offsets(text) == tokenizer.encode_with_offsets(text)


def test_fingerprints_tell_vocabularies_and_normalisations_apart(small: Tokenizer, with_commas: Tokenizer) -> None:
    others = [Tokenizer(small.model, Normalisation(lower_case=False)), with_commas]
    others += [Tokenizer(small.model, Normalisation(keep_accents=True))]
    assert len({small.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_a_folder_without_config_is_normalised_as_the_official_models(small: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(small.model)
    assert Tokenizer.load(tmp_path).normalisation == Normalisation(lower_case=True, keep_accents=False)


@pytest.mark.parametrize("contents", [b"", b"{}", b"no model", b"\x0a\xff\xff\xff\xff", bytes(5000)])
def test_a_damaged_model_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "spiece.model").write_bytes(contents)
    with pytest.raises(ModelError, match=r"spiece\.model: is not a SentencePiece model, or is damaged"):
        Tokenizer.load(tmp_path)


def test_a_model_cut_short_is_refused(small: Tokenizer, tmp_path: Path) -> None:
    for length in (10, 1000, len(small.model) // 2, len(small.model) - 1):
        (tmp_path / "spiece.model").write_bytes(small.model[:length])
        with pytest.raises(ModelError):
            Tokenizer.load(tmp_path)


def test_a_vocabulary_without_special_pieces_is_refused(corpus: Path, tmp_path: Path) -> None:
    sentencepiece.SentencePieceTrainer.Train(
        input=str(corpus), model_prefix=str(tmp_path / "other"), vocab_size=500, minloglevel=2
    )
    with pytest.raises(ModelError, match=r"has no <pad>, \[CLS\], \[SEP\], \[MASK\]"):
        Tokenizer.load(tmp_path / "other.model")


def test_a_missing_tokenizer_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"a tokenizer is a folder with spiece\.model"):
        Tokenizer.load(tmp_path)
    with pytest.raises(ModelError, match="No such file"):
        Tokenizer.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="no regular file"):
        Tokenizer.load("/dev/zero")


@pytest.mark.parametrize(
    "contents",
    [
        {},
        {"model": {"type": "BPE", "vocab": []}},
        {"model": {"type": "Unigram", "vocab": [1]}},
        {"model": {"type": "Unigram", "vocab": [["a", "b"]]}},
        {"model": {"type": "Unigram", "vocab": [["a", float("nan")]]}},
        {"model": {"type": "Unigram", "vocab": []}},
        {"model": {"type": "Unigram", "vocab": [["", -1.0]]}},
        {"model": {"type": "Unigram", "vocab": [["\ud800", -1.0]]}},
    ],
)
def test_a_wrong_tokenizer_json_is_refused(tmp_path: Path, contents: dict[str, object]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(contents))
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        Tokenizer.load(tmp_path)


def test_a_wrong_setting_is_named(small: Tokenizer, tmp_path: Path) -> None:
    small.save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "no"}')
    with pytest.raises(ModelError, match="do_lower_case is 'no': it must be true or false"):
        Tokenizer.load(tmp_path)


def test_saving_into_a_model_folder_keeps_the_model(small: Tokenizer, tmp_path: Path) -> None:
    shutil.copy(__file__, tmp_path / "model.safetensors")
    small.save(tmp_path)
    names = {"model.safetensors", "spiece.model", "tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_damaged_tokenizer_json_is_named_beside_a_spiece_model_too(
    tokenizer: Tokenizer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).fingerprint == tokenizer.fingerprint
    assert not caplog.records
    (tmp_path / "tokenizer.json").write_text("{broken")
    assert Tokenizer.load(tmp_path).fingerprint == tokenizer.fingerprint
    assert f"{tmp_path / 'tokenizer.json'}: is not valid JSON" in caplog.text
    assert "transformers will fail" in caplog.text
    (tmp_path / "spiece.model").unlink()
    with pytest.raises(ModelError, match=r"tokenizer.json: is not valid JSON"):
        Tokenizer.load(tmp_path)
