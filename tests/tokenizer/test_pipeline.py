"""The tokenizer.json gives our ids in `tokenizers` and in transformers, for every vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest
import tokenizers
import transformers

from albert.tokenizer import Tokenizer


def fast_ids(folder: Path, texts: list[str]) -> list[list[int]]:
    pipeline = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return [encoding.ids for encoding in pipeline.encode_batch_fast(texts, add_special_tokens=False)]


def differences(tokenizer: Tokenizer, folder: Path, texts: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return where the pieces of a text differ: ours, and those of `tokenizers`."""
    found = []
    for ours, theirs in zip(tokenizer.encode_many(texts), fast_ids(folder, texts), strict=True):
        if ours != theirs:
            while ours[:1] == theirs[:1]:
                ours, theirs = ours[1:], theirs[1:]
            while ours[-1:] == theirs[-1:]:
                ours, theirs = ours[:-1], theirs[:-1]
            found.append(([tokenizer.pieces[i] for i in ours], [tokenizer.pieces[i] for i in theirs]))
    return found


@pytest.mark.parametrize(("lower_case", "keep_accents"), [(True, False), (False, False), (True, True), (False, True)])
def test_our_own_vocabularies_give_the_same_ids(
    train: Callable[..., Tokenizer],
    corpus: Path,
    declaration: dict[str, str],
    tmp_path: Path,
    lower_case: bool,
    keep_accents: bool,
) -> None:
    tokenizer = train(lower_case=lower_case, keep_accents=keep_accents)
    tokenizer.save(tmp_path)
    texts = [*corpus.read_text(encoding="utf-8").split("\n"), *declaration.values()]
    assert differences(tokenizer, tmp_path, texts) == []


@pytest.mark.parametrize("vocabulary", ["small", "official"])
def test_every_character_gives_the_same_ids(vocabulary: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(vocabulary)
    tokenizer.save(tmp_path)
    letters = [*map(chr, range(1, 0x3000)), *map(chr, range(0xA000, 0xD800, 3)), *map(chr, range(0xF000, 0x30000, 3))]
    newer = "\ua7f2\ua7f3\ua7f4\U000107a5\U0001f16c" + "".join(map(chr, range(0x1FBF0, 0x1FBFA)))
    texts = [f"a{letter}b" for letter in letters if letter not in newer]  # than the Unicode that `tokenizers` knows
    assert differences(tokenizer, tmp_path, texts) == []


def real_sample(real_data: Path, oracle: ModuleType, step: int) -> Iterator[str]:
    for _, texts in oracle.real_texts(real_data):
        yield from islice(texts, 0, None, step)


def test_real_text_gives_the_same_ids_but_for_ties(
    official: Tokenizer, real_data: Path, oracle: ModuleType, tmp_path: Path
) -> None:
    official.save(tmp_path)
    texts = list(real_sample(real_data, oracle, 20))
    found = differences(official, tmp_path, texts)
    assert len(found) <= len(texts) / 10_000
    for ours, theirs in found:
        assert sorted(ours) == sorted(theirs) or "," in "".join(ours), (ours, theirs)


@pytest.mark.oracle
def test_all_real_text_gives_the_same_ids_but_for_41_lines(
    official: Tokenizer, real_data: Path, oracle: ModuleType, tmp_path: Path
) -> None:
    official.save(tmp_path)
    texts = list(real_sample(real_data, oracle, 1))
    found = differences(official, tmp_path, texts)
    commas = [pair for pair in found if "," in "".join(pair[0])]
    ties = [pair for pair in found if sorted(pair[0]) == sorted(pair[1])]
    others = [pair for pair in found if pair not in commas and pair not in ties]
    assert len(texts) == 617_348
    assert (len(commas), len(ties), others) == (2, 38, [(["▁bra", "zel"], ["▁braz", "el"])])


def test_transformers_keeps_our_pipeline(
    official: Tokenizer, real_data: Path, oracle: ModuleType, tmp_path: Path
) -> None:
    official.save(tmp_path / "ours")
    (tmp_path / "ours" / "config.json").write_text('{"model_type": "albert"}')  # as in a model folder
    texts = list(real_sample(real_data, oracle, 100))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "saved")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    ids = official.encode_many(texts)
    for tokenizer in (theirs, again):
        assert tokenizer(texts, add_special_tokens=False)["input_ids"] == ids
        pair = tokenizer("hello", "world!")
        assert pair["input_ids"] == [2, *official.encode("hello"), 3, *official.encode("world!"), 3]
        assert pair["token_type_ids"] == [0, 0, 0, 1, 1, 1]
        assert [tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id] == [0, 1, 4]
        assert tokenizer.decode(ids[5]) == official.decode(ids[5])
    assert Tokenizer.load(tmp_path / "saved").fingerprint == official.fingerprint  # though it has no spiece.model


def test_transformers_reads_a_mask_in_the_text(small: Tokenizer, tmp_path: Path) -> None:
    small.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("bacodi [MASK].")["input_ids"] == [2, *small.encode("bacodi"), 4, *small.encode("."), 3]


def test_a_tokenizer_that_transformers_made_of_spiece_model_is_ours_again(official: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(official.model)
    transformers.AlbertTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / "spiece.model").exists()
    loaded = Tokenizer.load(tmp_path / "saved")
    assert loaded.fingerprint == official.fingerprint
    assert loaded.encode("(born 28, 2004) extra-curricular") == official.encode("(born 28, 2004) extra-curricular")


def test_the_pipeline_is_readable_json(small: Tokenizer, tmp_path: Path) -> None:
    small.save(tmp_path)
    contents = json.loads((tmp_path / "tokenizer.json").read_bytes())
    assert [token["content"] for token in contents["added_tokens"]] == small.pieces[:5]
    assert len(contents["model"]["vocab"]) == small.vocab_size
