"""Vectors of texts: as arrays, compared, in folders that are searched exactly; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import albert
from albert.errors import DataError, ModelError, UsageError
from albert.inference import vectors as vectors_module
from albert.inference.fill import PlainText
from albert.inference.model import Model
from albert.inference.vectors import open_vectors, save_matrix
from albert.tasks.similarity import Similarity

MakeFolder = Callable[..., Path]
TEXTS = """The old harbour was quiet when the ship came in from the north.
Nobody had seen such a winter in forty years.
Maria wrote a long letter to her sister in Paris.
Which of the two brothers opened the door?
His dog waits at home every evening.
The film is a wonderful surprise.
What a terrible, boring waste of time.
It rained on Monday.
A good question is worth more than ten quick answers.
The machine reads every word of the text.""".splitlines()


@pytest.fixture
def model(make_folder: MakeFolder) -> Model:
    return albert.load(make_folder("mlm", "order"))


def test_a_list_of_texts_is_a_matrix_of_float32(model: Model) -> None:
    rows = model.embed(TEXTS)
    assert (rows.shape, rows.dtype) == ((10, 16), np.float32)
    assert model.embed(TEXTS[3]) == pytest.approx(rows[3], abs=1e-5)
    unit = model.embed(TEXTS, normalize=True)
    assert np.linalg.norm(unit, axis=1) == pytest.approx(np.ones(10))
    assert unit == pytest.approx(rows / np.linalg.norm(rows, axis=1, keepdims=True), abs=1e-6)
    assert model.embed([]).shape == (0, 16)


def test_similarity_is_the_cosine_of_two_of_pairs_or_of_one_with_many(model: Model) -> None:
    unit = model.embed(TEXTS[:4], normalize=True)
    cosines = unit @ unit.T
    assert model.similarity(TEXTS[0], TEXTS[1]) == pytest.approx(cosines[0, 1], abs=1e-5)
    assert model.similarity(TEXTS[:2], TEXTS[2:4]) == pytest.approx([cosines[0, 2], cosines[1, 3]], abs=1e-5)
    assert model.similarity(TEXTS[0], TEXTS[:4]) == pytest.approx(cosines[0], abs=1e-5)
    with pytest.raises(UsageError, match="2 of text and 3 of pair"):
        model.similarity(TEXTS[:2], TEXTS[:3])


def test_a_model_tuned_for_similarity_cuts_long_texts(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=Similarity(max_length=16)))
    long = " ".join(TEXTS)
    tokenizer = model.predictor.tokenizer
    begins = tokenizer.decode(tokenizer.encode(long)[:14])
    assert begins in long.lower()
    assert model.embed(long) == pytest.approx(model.embed(begins), abs=1e-5)


@pytest.mark.parametrize("block", [2**24, 48])
def test_a_search_gives_the_largest_of_all_cosines(
    block: int, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "BLOCK", block)  # 48: three rows at once
    assert model.save_vectors(TEXTS, tmp_path / "v") == 10
    queries = ["a letter from Paris", "the dog", TEXTS[4]]
    cosines = model.embed(queries, normalize=True) @ model.embed(TEXTS, normalize=True).T
    for found, expected in zip(model.search(queries, tmp_path / "v", top=4), cosines, strict=True):
        assert [one.row for one in found] == np.argsort(-expected)[:4].tolist()
        assert [one.similarity for one in found] == pytest.approx(np.sort(expected)[::-1][:4], abs=1e-5)
        assert all(one.text == TEXTS[one.row] and one.id == str(one.row) for one in found)
    (best, *_) = model.search(TEXTS[4], tmp_path / "v")
    assert (best.row, best.similarity) == (4, pytest.approx(1, abs=1e-5))
    assert len(model.search("x", tmp_path / "v", top=50)) == 10


def test_vectors_are_mapped_and_a_folder_is_written_again_as_a_whole(model: Model, tmp_path: Path) -> None:
    model.save_vectors([PlainText("one", "a1"), PlainText('two "quoted" ü\n', "b2")], tmp_path / "v")
    vectors = open_vectors(tmp_path / "v")
    assert isinstance(vectors.rows, np.memmap)
    assert {one.id: one.text for one in model.search("x", tmp_path / "v")} == {"a1": "one", "b2": 'two "quoted" ü\n'}
    model.save_vectors(TEXTS, tmp_path / "v")
    assert len(open_vectors(tmp_path / "v").rows) == 10
    with pytest.raises(DataError, match="no texts"):
        model.save_vectors([], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_place_that_holds_something_else_is_refused_before_a_text_is_read(model: Model, tmp_path: Path) -> None:
    def never() -> Iterator[str]:
        raise AssertionError("read")
        yield ""

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"holds thesis\.txt, which would be lost"):
        model.save_vectors(never(), tmp_path / "mine")
    with pytest.raises(UsageError, match="is a file: name a folder"):
        model.save_vectors(never(), tmp_path / "file")


def test_a_matrix_of_unknown_length_is_a_whole_npy(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((1234, 7)).astype(np.float32)
    assert save_matrix(tmp_path / "m.npy", iter(rows), width=7) == 1234
    assert np.array_equal(np.load(tmp_path / "m.npy"), rows)


def test_another_model_is_refused_by_name(model: Model, make_folder: MakeFolder, tmp_path: Path) -> None:
    model.save_vectors(TEXTS, tmp_path / "v")
    other = albert.load(make_folder("mlm", num_hidden_layers=3))  # the same weights at another depth
    with pytest.raises(ModelError, match=rf"v: its vectors are of .*mlm-order.*, the model is {other.name}"):
        other.search("x", tmp_path / "v")
    assert albert.load(model.folder).search("x", tmp_path / "v")


def test_what_has_no_vector_and_what_is_no_folder_of_vectors_is_named(model: Model, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="text 2: the text is empty"):
        model.embed(["a", " "])
    with pytest.raises(DataError, match="the text is empty"):
        model.similarity("a", "")
    with pytest.raises(DataError, match=r"none: no such folder: write them with `albert embed MODEL FILE --out"):
        model.search("x", tmp_path / "none")
    with pytest.raises(DataError, match="holds no vectors"):
        model.search("x", tmp_path)
    with pytest.raises(UsageError, match="top=0"):
        model.search("x", tmp_path, top=0)
    model.save_vectors(TEXTS, tmp_path / "v")
    manifest = json.loads((tmp_path / "v" / "vectors.json").read_text())
    (tmp_path / "v" / "vectors.json").write_text(json.dumps(manifest | {"count": 11}))
    with pytest.raises(DataError, match=r"vectors\.npy: is damaged \(float32 \(10, 16\), must be float32 \(11, 16\)"):
        model.search("x", tmp_path / "v")
