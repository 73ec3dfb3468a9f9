"""Legacy pickles: weights in, nothing run, every difference in one error."""

from __future__ import annotations

import ast
import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining
from typer.testing import CliRunner

from albert.batch import pack
from albert.cli import app
from albert.errors import ModelError, UsageError
from albert.interop import convert
from albert.interop.convert import read_checkpoint, write_folder
from albert.interop.source import find_source
from albert.model.folder import load_model
from albert.tokenizer import Tokenizer

SOURCE = Path(__file__).resolve().parents[2] / "src" / "albert"


def state_of(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(folder / "pytorch_model.bin", weights_only=True)
    return state


def rewrite(folder: Path, **changes: Any) -> None:
    """Change tensors of a legacy folder; None takes one away. Dots are written as `__`."""
    state = state_of(folder)
    for name, value in changes.items():
        state.pop(name.replace("__", "."), None)
        if value is not None:
            state[name.replace("__", ".")] = value
    torch.save(state, folder / "pytorch_model.bin")


def edit_config(folder: Path, **changes: Any) -> None:
    values = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(
        json.dumps({name: value for name, value in values.items() if value is not None})
    )


@pytest.mark.parametrize("archive", [True, False], ids=["zip", "before torch 1.6"])
def test_a_legacy_folder_becomes_one_that_computes_the_same(
    legacy: Path, tmp_path: Path, request: pytest.FixtureRequest, archive: bool
) -> None:
    if not archive:
        request.getfixturevalue("in_process")
    state = state_of(legacy)
    torch.save(state, legacy / "pytorch_model.bin", _use_new_zipfile_serialization=archive)
    oracle = AlbertForPreTraining(AlbertConfig.from_pretrained(legacy)).eval()
    oracle.load_state_dict(state, strict=False)
    converted = read_checkpoint(legacy)
    write_folder(converted, tmp_path / "out")
    model = load_model(tmp_path / "out").model
    ids = [2, *range(10, 30), 3]
    encoded = model(pack([ids]))
    with torch.no_grad():
        expected = oracle(torch.tensor([ids]))
        logits = model.mlm_logits(encoded, torch.arange(len(ids)))
        order = model.heads["order"](encoded.pooled)
    assert torch.allclose(logits, expected.prediction_logits[0], atol=2e-5)
    assert torch.allclose(order, expected.sop_logits, atol=2e-5)
    assert (converted.new, converted.dropped) == ((), ())
    assert (tmp_path / "out" / "spiece.model").read_bytes() == (legacy / "spiece.model").read_bytes()
    assert Tokenizer.load(tmp_path / "out").vocab_size == 90


class Hostile:
    """Runs a command when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.path}'",)


@pytest.mark.parametrize("form", ["torch", "pickle", "nested"])
def test_a_pickle_that_runs_code_is_refused_and_does_not_run(
    legacy: Path, tmp_path: Path, request: pytest.FixtureRequest, form: str
) -> None:
    trace, path = tmp_path / "trace", legacy / "pytorch_model.bin"
    if form != "nested":
        request.getfixturevalue("in_process")
    match form:
        case "torch":
            torch.save({"albert.pooler.weight": Hostile(trace)}, path)
        case "pickle":
            path.write_bytes(pickle.dumps(Hostile(trace), protocol=2))
        case "nested":
            torch.save(state_of(legacy) | {"extra": [Hostile(trace)]}, path)
    result = CliRunner().invoke(app, ["convert", str(legacy), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, ModelError)
    assert result.exception.exit_code == 4
    assert "refused" in str(result.exception)
    assert "weights_only" not in str(result.exception), "no advice to open it in an unsafe way"
    assert not trace.exists()
    assert not (tmp_path / "out").exists()


class Bomb:
    """Takes 64 GB when unpickled, by means that weights-only loading allows."""

    def __reduce__(self) -> Any:
        return bytearray, (2**36,)


def test_a_pickle_that_eats_memory_is_refused(legacy: Path) -> None:
    path = legacy / "pytorch_model.bin"
    torch.save({"x": Bomb()}, path)
    with pytest.raises(ModelError, match="refused"):
        read_checkpoint(legacy)
    one = torch.zeros(1).as_strided((2**18, 2**18), (0, 0))  # one number on disk, 256 GB when laid out
    torch.save({"albert.pooler.weight": one}, path)
    with pytest.raises(ModelError, match="refused: opening it takes far more memory"):
        read_checkpoint(legacy)


@pytest.mark.usefixtures("in_process")
def test_a_compressed_archive_is_not_inflated(legacy: Path) -> None:
    path = legacy / "pytorch_model.bin"
    torch.save({"albert.pooler.weight": torch.zeros(2**20)}, path)
    inflated = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(inflated, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            new.writestr(item, old.read(item))
    path.write_bytes(inflated.getvalue())
    with pytest.raises(ModelError, match="refused"):
        read_checkpoint(legacy)


def test_a_reader_that_never_ends_is_stopped(legacy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "PATIENCE", 0.01)
    with pytest.raises(ModelError, match="took more than 0 s"):
        read_checkpoint(legacy)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "holds a list, not tensors by name"),
        ({1: torch.zeros(1)}, "not tensors by name"),
        ({"albert.pooler.weight": "text"}, r"not plain floating-point tensors: albert\.pooler\.weight"),
        ({"albert.pooler.weight": torch.zeros(2, 2).to_sparse()}, "not plain floating-point tensors"),
        ({"albert.pooler.weight": torch.zeros(2, dtype=torch.int64)}, "not plain floating-point tensors"),
    ],
)
def test_what_is_not_tensors_by_name_is_refused(legacy: Path, content: Any, message: str) -> None:
    torch.save(content, legacy / "pytorch_model.bin")
    with pytest.raises(ModelError, match=message):
        read_checkpoint(legacy)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("keep", [0, 1, 100, 5000])
def test_a_file_cut_short_is_refused(legacy: Path, keep: int) -> None:
    path = legacy / "pytorch_model.bin"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match="refused"):
        read_checkpoint(legacy)


@pytest.mark.usefixtures("in_process")
def test_all_that_does_not_fit_is_in_one_error_that_names_the_users_files(legacy: Path) -> None:
    rewrite(
        legacy,
        albert__embeddings__LayerNorm__bias=None,
        albert__encoder__strange__weight=torch.zeros(3),
        albert__encoder__embedding_hidden_mapping_in__weight=torch.zeros(16, 32),
    )
    with pytest.raises(ModelError) as caught:
        read_checkpoint(legacy)
    text = str(caught.value)
    assert text.startswith(f"{legacy / 'pytorch_model.bin'}: does not fit")
    for part in (
        "missing albert.embeddings.LayerNorm.bias [16]",
        "unexpected albert.encoder.strange.weight [3]",
        "embedding_hidden_mapping_in.weight is [16, 32], should be [32, 16]",
    ):
        assert part in text


@pytest.mark.usefixtures("in_process")
def test_weights_that_are_not_numbers_are_refused(legacy: Path) -> None:
    rewrite(legacy, albert__pooler__bias=torch.full((32,), float("nan")))
    with pytest.raises(ModelError, match=r"pytorch_model\.bin: albert\.pooler\.bias has numbers that are not finite"):
        read_checkpoint(legacy)


@pytest.mark.usefixtures("in_process")
def test_heads_follow_the_architecture_or_else_the_weights(legacy: Path) -> None:
    edit_config(legacy, architectures=["AlbertForMaskedLM"])
    assert list(read_checkpoint(legacy).model.heads) == ["mlm", "order"], "hub files say MaskedLM and hold both"
    edit_config(legacy, architectures=None)
    assert list(read_checkpoint(legacy).model.heads) == ["mlm", "order"]
    edit_config(legacy, architectures=["AlbertForSequenceClassification"])
    converted = read_checkpoint(legacy)
    assert converted.new == ("heads.classifier.linear.weight", "heads.classifier.linear.bias")
    assert "predictions.bias" in converted.dropped


@pytest.mark.usefixtures("in_process")
def test_the_activation_of_the_v1_models_is_pointed_out(legacy: Path) -> None:
    assert read_checkpoint(legacy).notes == ()
    edit_config(legacy, hidden_act="gelu")
    (note,) = read_checkpoint(legacy).notes
    assert "tanh" in note
    assert read_checkpoint(legacy).model.config.hidden_act == "gelu", "as transformers computes it"


@pytest.mark.usefixtures("in_process")
def test_a_vocabulary_larger_than_the_model_is_refused(legacy: Path, real_data: Path) -> None:
    with pytest.raises(ModelError, match=r"30,000 pieces, but the model has vocab_size=90"):
        read_checkpoint(legacy, vocab=real_data / "vocab" / "spiece.model")


@pytest.mark.usefixtures("in_process")
def test_without_a_vocabulary_the_note_says_so(legacy: Path, tmp_path: Path) -> None:
    (legacy / "spiece.model").unlink()
    converted = read_checkpoint(legacy)
    assert "--vocab" in converted.notes[0]
    write_folder(converted, tmp_path / "out")
    assert not (tmp_path / "out" / "tokenizer.json").exists()


@pytest.mark.usefixtures("in_process")
def test_a_vocabulary_in_tokenizer_json_alone_is_found_and_word_pieces_are_not(legacy: Path, tmp_path: Path) -> None:
    Tokenizer.load(legacy).save(tmp_path / "words", max_length=40)
    (legacy / "spiece.model").unlink()
    shutil.copyfile(tmp_path / "words" / "tokenizer.json", legacy / "tokenizer.json")
    found = find_source(legacy)
    assert found.vocab == legacy / "tokenizer.json"
    assert found.vocab is not None
    assert Tokenizer.load(found.vocab).encode("a ship") == Tokenizer.load(tmp_path / "words").encode("a ship")
    (legacy / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}')
    assert find_source(legacy).vocab is None


def test_a_dry_run_checks_everything_and_writes_nothing(legacy: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["convert", str(legacy), "--out", str(tmp_path / "out"), "--dry-run", "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["out"], facts["kind"], facts["heads"]) == (None, "pickle", ["mlm", "order"])
    assert facts["parameters"] == sum(tensor.numel() for tensor in read_checkpoint(legacy).model.parameters())
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("in_process")
def test_a_folder_that_holds_something_else_is_not_overwritten(legacy: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    result = CliRunner().invoke(app, ["convert", str(legacy), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, UsageError)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


def test_the_package_has_one_call_that_opens_pickles_and_it_is_weights_only() -> None:
    calls = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                # these two send objects of their own to Ray workers of their own, as Ray does: nothing from outside
                if path.name not in ("engines.py", "ray_data.py"):
                    assert not names & {"pickle", "cloudpickle", "joblib", "dill", "shelve", "marshal"}, path
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.load", "numpy.load", "np.load"):
                options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                assert options.get("allow_pickle", "False") == "False", path
                if ast.unparse(node.func) == "torch.load":
                    calls.append((path.name, options.get("weights_only")))
    assert calls == [("reader.py", "True")]
