"""Our model against transformers' on the same random weights, exchanged through folders in both directions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from albert.batch import Batch, pack
from albert.model import Packed
from albert.model.folder import ARCHITECTURES, load_model, save_model
from albert.model.losses import cross_entropy
from albert.model.weights import expand

TOLERANCE = 2e-5

SMALL = {
    "vocab_size": 500, "embedding_size": 24, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 96,
}  # fmt: skip
SHAPES: dict[str, dict[str, object]] = {
    "small": SMALL,
    "erf": SMALL | {"hidden_act": "gelu"},
    "relu": SMALL | {"hidden_act": "relu"},
    "narrow ffn": SMALL | {"intermediate_size": 40},
    "one layer": SMALL | {"num_hidden_layers": 1},
    "groups": SMALL | {"num_hidden_layers": 6, "num_hidden_groups": 3},
    "uneven groups": SMALL | {"num_hidden_layers": 7, "num_hidden_groups": 3},
    "inner groups": SMALL | {"num_hidden_layers": 2, "inner_group_num": 2, "num_hidden_groups": 2},
    "unshared": SMALL | {"num_hidden_groups": 3},
    "vocabulary 178": SMALL | {"vocab_size": 178},
    "equal widths": SMALL | {"embedding_size": 48},
}
BASE = {
    "vocab_size": 30000, "embedding_size": 128, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072,
}  # fmt: skip


def make_theirs(name: str, shape: dict[str, object], **extra: object) -> transformers.PreTrainedModel:
    torch.manual_seed(3)
    config = transformers.AlbertConfig(
        **(shape | {"num_labels": 3 if "Sequence" in name or "Token" in name else 2} | extra)
    )
    model = getattr(transformers, name)(config)
    with torch.no_grad():  # random biases and norms too, or half of the table would go unseen
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def mixed_batch(vocab_size: int, lengths: list[int], seed: int = 1) -> Batch:
    rng = np.random.default_rng(seed)
    return pack(
        [rng.integers(0, vocab_size, n) for n in lengths],
        [(np.arange(n) > n // 2).astype(np.int64) for n in lengths],
    )


def padded(batch: Batch) -> dict[str, torch.Tensor]:
    """Lay a packed batch out as transformers wants it."""
    size = (len(batch.lengths), int(batch.lengths.max()))
    ids, types, mask = (torch.zeros(size, dtype=torch.long) for _ in range(3))
    for row, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
        ids[row, :length] = torch.from_numpy(batch.token_ids[start : start + length])
        types[row, :length] = torch.from_numpy(batch.segment_ids[start : start + length])
        mask[row, :length] = 1
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


def packed_rows(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    return torch.cat([values[row, :length] for row, length in enumerate(batch.lengths.tolist())])


def compare(name: str, theirs: transformers.PreTrainedModel, ours_folder: Path, batch: Batch) -> float:
    """Return the largest difference of any output."""
    ours = load_model(ours_folder).model
    inputs = padded(batch)
    differences = []
    with torch.no_grad():
        packed = Packed.from_batch(batch)
        encoded = ours(packed)
        everywhere = torch.arange(batch.token_ids.size)
        if name == "AlbertForMultipleChoice":
            out = theirs(**{key: value.unsqueeze(0) for key, value in inputs.items()})
            return (ours.heads["choice"](encoded.pooled).T - out.logits).abs().max().item()
        out = theirs(**inputs)
        match name:
            case "AlbertModel":
                differences.append(encoded.states - packed_rows(out.last_hidden_state, batch))
                differences.append(encoded.pooled - out.pooler_output)
            case "AlbertForPreTraining":
                differences.append(ours.mlm_logits(encoded, everywhere) - packed_rows(out.prediction_logits, batch))
                differences.append(ours.heads["order"](encoded.pooled) - out.sop_logits)
            case "AlbertForMaskedLM":
                assert ours.encoder.pooler is None
                differences.append(ours.mlm_logits(encoded, everywhere) - packed_rows(out.logits, batch))
            case "AlbertForSequenceClassification":
                differences.append(ours.heads["classifier"](encoded.pooled) - out.logits)
            case "AlbertForTokenClassification":
                differences.append(ours.heads["tags"](encoded.states) - packed_rows(out.logits, batch))
            case "AlbertForQuestionAnswering":
                both = torch.stack([out.start_logits, out.end_logits], dim=-1)
                differences.append(ours.heads["span"](encoded.states) - packed_rows(both, batch))
    return max(d.abs().max().item() for d in differences)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_head_computes_what_transformers_computes(name: str, shape: str, tmp_path: Path) -> None:
    theirs = make_theirs(name, SHAPES[shape])
    theirs.save_pretrained(tmp_path)
    batch = mixed_batch(theirs.config.vocab_size, [2, 512, 33, 7, 120])
    assert compare(name, theirs, tmp_path, batch) <= TOLERANCE


@pytest.mark.parametrize("name", ["AlbertForPreTraining", "AlbertForSequenceClassification"])
def test_the_base_shape_computes_what_transformers_computes(name: str, tmp_path: Path) -> None:
    theirs = make_theirs(name, BASE)
    theirs.save_pretrained(tmp_path)
    assert compare(name, theirs, tmp_path, mixed_batch(30000, [2, 512, 60, 17])) <= TOLERANCE


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("shape", ["small", "groups", "inner groups", "unshared", "equal widths"])
def test_weights_survive_the_round_trip_both_ways_bit_for_bit(name: str, shape: str, tmp_path: Path) -> None:
    theirs = make_theirs(name, SHAPES[shape])
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    assert (loaded.new, loaded.dropped) == ((), ())
    save_model(loaded.model, tmp_path / "ours")
    reread, info = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    original = theirs.state_dict()
    for key, value in reread.state_dict().items():
        assert torch.equal(value, original[key]), key
    first, second = load_file(tmp_path / "theirs/model.safetensors"), load_file(tmp_path / "ours/model.safetensors")
    assert set(first) == set(second)
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_an_auto_class_opens_what_we_write(tmp_path: Path) -> None:
    theirs = make_theirs("AlbertForSequenceClassification", SMALL)
    theirs.save_pretrained(tmp_path / "theirs")
    save_model(load_model(tmp_path / "theirs").model, tmp_path / "ours")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    assert isinstance(model, transformers.AlbertForSequenceClassification)
    assert model.config.num_labels == 3


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("shape", ["small", "groups", "equal widths"])
@pytest.mark.parametrize("name", ["AlbertForPreTraining", "AlbertForSequenceClassification"])
def test_gradients_equal_transformers(name: str, shape: str, tmp_path: Path) -> None:
    theirs = make_theirs(name, SHAPES[shape], classifier_dropout_prob=0.0)
    theirs.save_pretrained(tmp_path)
    ours = load_model(tmp_path).model
    batch = mixed_batch(theirs.config.vocab_size, [5, 64, 33, 2])
    rng = np.random.default_rng(0)
    positions = torch.from_numpy(np.sort(rng.choice(batch.token_ids.size, 20, replace=False)))
    labels = torch.from_numpy(rng.integers(0, theirs.config.vocab_size, 20))
    classes = torch.tensor([0, 1, 1, 0])
    encoded = ours(batch)
    if name == "AlbertForPreTraining":
        loss = cross_entropy(ours.mlm_logits(encoded, positions), labels) + cross_entropy(
            ours.heads["order"](encoded.pooled), classes
        )
        everywhere = torch.full((batch.token_ids.size,), -100)
        everywhere[positions] = labels
        rows = torch.full((len(batch.lengths), int(batch.lengths.max())), -100)
        for row, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
            rows[row, :length] = everywhere[start : start + length]
        their_loss = theirs(**padded(batch), labels=rows, sentence_order_label=classes).loss
    else:
        loss = cross_entropy(ours.heads["classifier"](encoded.pooled), classes)
        their_loss = theirs(**padded(batch), labels=classes).loss
    assert abs(loss.item() - their_loss.item()) <= 1e-5
    loss.backward()
    their_loss.backward()
    table = {e.hf: e.ours for e in expand(ours.config, ours.heads, pooler=ours.encoder.pooler is not None)}
    mine, reference = gradients(ours), gradients(theirs)
    compared = 0
    for hf, gradient in reference.items():
        if hf.endswith("attention.key.bias"):  # softmax ignores it: its true gradient is 0, both give rounding noise
            continue
        difference = (mine[table[hf]] - gradient).norm() / gradient.norm().clamp_min(1e-12)
        assert difference <= 1e-4, hf
        compared += 1
    assert compared == len(mine) - len([n for n in mine if n.endswith("key.bias")])
