"""Exports: other programs' files that say what torch says, with each shared weight once; int8 that is scored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from albert.errors import DataError, ModelError, UsageError
from albert.export import files
from albert.export.check import TOLERANCE
from albert.export.files import export_files
from albert.export.hf import export_hf, unshared
from albert.export.sensitive import in_int8
from albert.export.source import Source, open_source
from albert.inference.int8 import EXPORTED
from albert.inference.model import load
from albert.model import AlbertConfig
from albert.model.folder import load_model


def need(form: str) -> None:
    for package in files.NEEDS[form]:
        pytest.importorskip(package, reason=f"export {form}: pip install 'albert-lite[{form}]'")


@pytest.mark.parametrize(
    "heads", [(), ("classifier",), ("choice",), ("tags",), ("span",), ("mlm", "order")], ids="-".join
)
@pytest.mark.parametrize("form", ["onnx", "openvino"])
def test_an_export_says_what_torch_says(form: Any, heads: tuple[str, ...], make_source: Any, tmp_path: Path) -> None:
    need(form)
    exported = export_files(make_source(*heads), tmp_path / "out", form=form, int8=True)
    assert exported.difference < TOLERANCE
    assert exported.int8 is not None
    assert 1e-4 < exported.int8.error < 0.3
    expected = {"config.json", "tokenizer.json", "spiece.model", files.FP32_FILE[form], files.INT8_FILE[form]}
    assert expected <= set(exported.files)
    assert "model.safetensors" not in exported.files
    for name, size in exported.files.items():
        assert (tmp_path / "out" / name).stat().st_size == size


def test_a_shared_weight_is_stored_once(make_source: Any) -> None:
    need("onnx")
    from albert.export.whole_graph import whole_graph

    model = make_source("classifier", hidden_size=128, intermediate_size=512, num_hidden_layers=12).model
    weights = sum(parameter.numel() for parameter in model.parameters())
    nodes = 12 * 10_000  # bytes, at most
    assert len(whole_graph(model).SerializeToString()) < 4 * weights + nodes
    assert len(whole_graph(model, int8="rows").SerializeToString()) < 1.1 * weights + nodes


def test_without_the_extra_the_export_to_transformers_still_works_and_others_name_it() -> None:
    code = (
        "import sys; sys.modules |= {'onnx': None, 'onnxruntime': None, 'openvino': None}\n"
        "import albert.export.hf, albert.export.files, albert.inference.model"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("sharing", ["attention", "ffn", "none"])
def test_models_that_share_less_are_exported_too(sharing: str, make_source: Any, tmp_path: Path) -> None:
    need("onnx")
    source = make_source("tags", sharing=sharing)
    assert export_files(source, tmp_path / "out", form="onnx").difference < TOLERANCE
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("albert", ["AlbertForTokenClassification"])
    assert "sharing" not in config, "other programs open the graph, and need not know"


def test_a_folder_of_sentence_transformers_is_exported_as_vectors(make_source: Any, tmp_path: Path) -> None:
    need("onnx")
    import onnxruntime

    folder = make_source("mlm", "order").folder
    (folder / "modules.json").write_text("[]")
    export_files(open_source(str(folder), vectors=True), tmp_path / "out", form="onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "out/onnx/model.onnx"))
    assert session.get_outputs()[0].name == "last_hidden_state"
    assert json.loads((tmp_path / "out/config.json").read_text())["architectures"] == ["AlbertModel"]


def test_onnx_runtime_gives_what_transformers_gives(make_source: Any, tmp_path: Path) -> None:
    need("onnx")
    import onnxruntime
    from transformers import AlbertForSequenceClassification

    source = make_source("classifier")
    export_files(source, tmp_path / "out", form="onnx")
    theirs = AlbertForSequenceClassification.from_pretrained(source.folder).eval()
    rng = np.random.default_rng(0)
    mask = np.array([[1] * 30, [1] * 12 + [0] * 18])
    feeds = {
        "input_ids": rng.integers(5, source.model.config.vocab_size, (2, 30)) * mask,
        "attention_mask": mask,
        "token_type_ids": mask * 0,
    }
    feeds["token_type_ids"][:, 8:12] = 1
    (ours,) = onnxruntime.InferenceSession(str(tmp_path / "out/onnx/model.onnx")).run(["logits"], feeds)
    with torch.no_grad():
        logits = theirs(**{name: torch.from_numpy(values) for name, values in feeds.items()}).logits.numpy()
    np.testing.assert_allclose(ours, logits, atol=1e-4)


def rows(path: Path, source: Source, texts: list[str]) -> Path:
    """Write rows whose labels are the model's own decisions: the score before is 100."""
    model = load(source.folder)
    lines = [{"text": text, "label": model.classify(text).label} for text in texts]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


TEXTS = [
    f"the {a} {b} came {c}" for a in ("old", "small", "grey") for b in ("ship", "dog") for c in ("in", "home", "at")
]


def test_int8_is_scored_before_and_after(make_source: Any, tmp_path: Path) -> None:
    need("onnx")
    source = make_source("classifier")
    dev = rows(tmp_path / "dev.jsonl", source, TEXTS)
    exported = export_files(
        source, tmp_path / "out", form="onnx", int8=True, calibrate=dev, dev=dev, allowed_loss=100.0
    )
    facts = exported.int8
    assert facts is not None
    assert (facts.measure, facts.before) == ("accuracy", 100.0)
    assert facts.after is not None
    assert 50 < facts.after <= 100
    assert set(facts.alone) == set(EXPORTED)
    assert all(error > 0 for error in facts.alone.values())


def test_int8_that_loses_too_much_is_refused_and_nothing_is_written(
    make_source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("onnx")
    source = make_source("classifier")
    dev = rows(tmp_path / "dev.jsonl", source, TEXTS)
    scores = iter([90.0, *[80.0] * 20])
    monkeypatch.setattr(files.DevScore, "of", lambda self, engine: next(scores))
    with pytest.raises(ModelError, match=r"loses 10\.00 points .*nothing was written"):
        export_files(source, tmp_path / "out", form="onnx", int8=True, dev=dev)
    assert not (tmp_path / "out").exists()


def test_a_matrix_that_int8_ruins_stays_in_fp32(make_source: Any, tmp_path: Path) -> None:
    need("onnx")
    source = make_source("tags")
    with torch.no_grad():  # one large weight a row: the others vanish in its scale
        source.model.encoder.ffn[0].down.weight[:, 0] = 50.0
    exported = export_files(source, tmp_path / "out", form="onnx", int8=True)
    assert exported.int8 is not None
    assert "down" in exported.int8.kept
    assert max(exported.int8.alone, key=lambda name: exported.int8.alone[name]) == "down"
    assert exported.int8.error < 0.2


def test_int8_for_a_while_leaves_the_model_as_it_was(make_source: Any) -> None:
    model = make_source("classifier").model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with in_int8(model, EXPORTED):
        pass
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    "config", [{"sharing": "attention"}, {"sharing": "ffn"}, {"norm_per_depth": True, "adapter_rank": 2}], ids=str
)
def test_a_model_of_ours_becomes_one_that_transformers_opens(
    config: dict[str, Any], make_source: Any, tmp_path: Path
) -> None:
    from transformers import AlbertForTokenClassification

    source = make_source("tags", **config)
    with torch.no_grad():
        for parameter in source.model.encoder.own.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 0.1)
    exported = export_hf(source, tmp_path / "out")
    assert exported.difference < TOLERANCE
    theirs = AlbertForTokenClassification.from_pretrained(tmp_path / "out").eval()
    ids = torch.randint(5, 200, (1, 20), generator=torch.Generator().manual_seed(2))
    from albert.batch import pack

    said = source.engine.run(pack(ids.numpy()), {"tags": "tokens"})[0]["tags"][0]
    with torch.no_grad():
        np.testing.assert_allclose(theirs(ids).logits[0].numpy(), said, atol=1e-4)
    assert load(tmp_path / "out").task == source.remembered.task


def test_the_shipped_model_is_exported(tmp_path: Path) -> None:
    need("onnx")
    source = open_source("tiny-en")
    assert export_files(source, tmp_path / "out", form="onnx").difference < TOLERANCE


def test_what_lies_beside_a_model_and_is_not_of_it_stays_there(make_source: Any) -> None:
    need("onnx")
    source = make_source("classifier")
    (source.folder / "checkpoint-10").mkdir()
    for name in ("checkpoint-10/optimizer.pt", "training_args.bin", "LICENSE"):
        (source.folder / name).write_bytes(b"0")
    (source.folder / "1_Pooling").mkdir()
    (source.folder / "1_Pooling" / "config.json").write_text("{}")
    export_files(source, source.folder / "exports", form="onnx")
    files = {str(path.relative_to(source.folder / "exports")) for path in (source.folder / "exports").rglob("*.*")}
    assert {"1_Pooling/config.json", "task.json", "config.json"} <= files
    assert not {"optimizer.pt", "training_args.bin"} & {Path(name).name for name in files}


def test_what_transformers_opens_anyway_is_written_as_it_is(make_source: Any, tmp_path: Path) -> None:
    source = make_source("classifier")
    assert export_hf(source, tmp_path / "out").difference == 0.0
    assert load_model(tmp_path / "out").model.config == source.model.config
    assert unshared(source.model).config.sharing == "none"


def test_what_cannot_be_exported_is_said(make_source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("onnx")
    source = make_source("conditional_span")
    with pytest.raises(UsageError, match="plain span head"):
        export_files(source, tmp_path / "out", form="onnx")
    with pytest.raises(UsageError, match="no class"):
        export_hf(source, tmp_path / "out")
    with pytest.raises(UsageError, match="for --int8"):
        export_files(source, tmp_path / "out", form="onnx", dev=tmp_path)
    with pytest.raises(DataError, match="no such file"):
        export_files(make_source("classifier"), tmp_path / "out", form="onnx", int8=True, dev=tmp_path / "x.csv")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'albert-lite\[openvino\]'"):
        export_files(source, tmp_path / "out", form="openvino")


def test_a_damaged_export_is_named(tmp_path: Path) -> None:
    need("onnx")
    from albert.export.exported_engine import open_onnx

    path = tmp_path / "model.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(ModelError, match=r"model\.onnx: ONNX Runtime can't open it"):
        open_onnx(path, AlbertConfig(), [])
