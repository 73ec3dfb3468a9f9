"""Model folders: Hugging Face's layout, read strictly and written atomically.

A folder holds config.json and model.safetensors, and usually a tokenizer and a model card. What is read is checked
against the configuration by the file's header, before a byte is allocated; the backbone must fit exactly, heads may be
new or dropped and are listed. A model that transformers would open and compute wrongly is written as
`model_type: albert-lite`, which transformers refuses. Tied weights are stored once. Nothing is ever unpickled.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from albert.errors import ModelError, UsageError
from albert.files import atomic_folder, read_json, write_json
from albert.model.albert import HEADS, Albert, initialise
from albert.model.config import OURS, AlbertConfig, from_json, to_json
from albert.model.locate import locate
from albert.model.tensor_file import read_header, read_tensors, write_tensors
from albert.model.weights import BACKBONE, Entry, expand, is_ignored
from albert.tokenizer import Tokenizer

log = logging.getLogger(__name__)

# The head sets that transformers has a class for.
ARCHITECTURES: dict[str, tuple[str, ...]] = {
    "AlbertModel": (),
    "AlbertForPreTraining": ("mlm", "order"),
    "AlbertForMaskedLM": ("mlm",),
    "AlbertForSequenceClassification": ("classifier",),
    "AlbertForMultipleChoice": ("choice",),
    "AlbertForTokenClassification": ("tags",),
    "AlbertForQuestionAnswering": ("span",),
}

# Heads with two outputs in every model; transformers gives them as many as there are labels.
TWO_OUTPUTS = frozenset({"span", "order"})

CONFIG_LIMIT = 8 * 2**20  # id2label of many labels; nothing honest is larger


@dataclass(frozen=True)
class Loaded:
    """A model read from a folder, and which of its parameters are new or were left behind."""

    model: Albert
    new: tuple[str, ...]  # parameters drawn at random, because the folder has none
    dropped: tuple[str, ...]  # tensors of the folder that no head asked for uses


def architecture(heads: Sequence[str]) -> str | None:
    """Name the transformers class for a set of heads, if there is one."""
    return next((name for name, set_ in ARCHITECTURES.items() if set(set_) == set(heads)), None)


def transformers_opens(config: AlbertConfig, heads: Sequence[str]) -> bool:
    """Tell whether transformers would open the folder and compute the same."""
    plain = config.sharing in ("all", "none") and not config.is_relaxed
    return plain and _same_groups(config) and architecture(heads) is not None


def _same_groups(config: AlbertConfig) -> bool:
    """Tell whether each depth's group is the one of transformers, which rounds: 18 layers in 14 groups differ."""
    layers, groups = config.num_hidden_layers, config.num_hidden_groups
    return all(int(depth / (layers / groups)) == depth * groups // layers for depth in range(layers))


@dataclass(frozen=True)
class _Plan:
    """How a weight file fills a model: decided from headers, before anything is allocated."""

    config: AlbertConfig
    heads: tuple[str, ...]
    pooler: bool
    sources: dict[str, str]  # our parameter → tensor in the file
    new: tuple[str, ...]
    dropped: tuple[str, ...]


def load_model(
    folder: Path | str,
    heads: Sequence[str] | None = None,
    *,
    seed: int = 0,
    config: AlbertConfig | None = None,
    fresh: Sequence[str] = (),
) -> Loaded:
    """Read a model (see locate.py); `heads` defaults to those it has. New heads are drawn with `seed`.

    `config` is used in place of the folder's (other labels, other dropout); heads in `fresh` are new in any case.
    """
    folder = locate(folder)
    values = read_json(folder / "config.json", limit=CONFIG_LIMIT)
    if config is None:
        config = from_json(values, source=folder / "config.json")
    if heads is None:
        heads = stored_heads(values, source=folder / "config.json")
    plan = _plan(weights_path(folder), config, heads, fresh=fresh)
    with torch.device("meta"):
        model = Albert(plan.config, plan.heads, pooler=plan.pooler)
    model.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(seed)
    for name in sorted({".".join(parameter.split(".")[:2]) for parameter in plan.new}):  # heads.x, encoder.pooler
        initialise(model.get_submodule(name), config.initializer_range, generator=generator)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        tensors = read_tensors(weights_path(folder), list(plan.sources.values()))
        for ours, tensor in zip(plan.sources, tensors, strict=True):
            if not torch.isfinite(tensor).all():
                raise ModelError(
                    f"{weights_path(folder)}: {plan.sources[ours]} has numbers that are not finite: the file is "
                    "damaged, or the run diverged: take an earlier checkpoint"
                )
            parameters[ours].copy_(tensor)
    if plan.new:
        log.info("%s: drawn at random, not in the folder: %s", folder, ", ".join(plan.new))
    if plan.dropped:
        log.info("%s: not used: %s", folder, ", ".join(plan.dropped))
    return Loaded(model.eval(), plan.new, plan.dropped)


def load_tokenizer(folder: Path, config: AlbertConfig) -> Tokenizer:
    """Read the tokenizer of a model, which must not have pieces that the model has no embedding for."""
    tokenizer = Tokenizer.load(folder)
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            f"{folder}: its tokenizer has {tokenizer.vocab_size:,} pieces, its model {config.vocab_size:,}: "
            "they do not belong together"
        )
    return tokenizer


def check_weights(folder: Path, config: AlbertConfig, heads: Sequence[str]) -> AlbertConfig:
    """Check a folder's weights against its configuration by their header; give the configuration as it will load."""
    return _plan(weights_path(folder), config, heads).config


def _plan(path: Path, config: AlbertConfig, heads: Sequence[str], *, fresh: Sequence[str] = ()) -> _Plan:
    header = read_header(path, ignore=is_ignored)
    found = {_with_prefix(name): name for name in header}
    config = replace(config, project_equal=_keeps_projection(config, found, path))
    pooler = f"{BACKBONE}pooler.weight" in found or any(HEADS[head].pooled for head in heads)
    entries = expand(config, heads, pooler=pooler)
    replaced = {entry.hf for entry in entries if _head_of(entry) in fresh} & found.keys()
    shapes = {hf: header[name] for hf, name in found.items() if hf not in replaced}
    new, dropped = _compare(entries, shapes, config, path)
    sources = {entry.ours: found[entry.hf] for entry in entries if entry.ours not in new}
    return _Plan(config, tuple(heads), pooler, sources, new, (*dropped, *sorted(replaced)))


def save_model(
    model: Albert,
    folder: Path | str,
    *,
    tokenizer: Tokenizer | None = None,
    card: str | None = None,
    dtype: torch.dtype = torch.float32,
    extra: Mapping[str, Any] | None = None,
    max_length: int | None = None,
) -> None:
    """Write a model folder, replacing what was there as a whole; `extra` are JSON files in it, by name.

    `max_length` is where the tokenizer cuts texts for others: what the model was tuned with, else all its positions.
    """
    with atomic_folder(folder) as temporary:
        write_json(temporary / "config.json", config_json(model, dtype=dtype))
        write_tensors(temporary / "model.safetensors", _tensors(model, dtype=dtype), metadata={"format": "pt"})
        # safetensors writes for the owner alone; a model is for whoever may read its config
        (temporary / "model.safetensors").chmod((temporary / "config.json").stat().st_mode)
        (temporary / "README.md").write_text(card or _plain_card(model), encoding="utf-8")
        if tokenizer is not None:
            tokenizer.save(temporary, max_length=max_length or model.config.max_position_embeddings)
        for name, value in (extra or {}).items():
            (temporary / name).parent.mkdir(exist_ok=True)
            write_json(temporary / name, value)


def config_json(model: Albert, *, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Return the contents of config.json: transformers' own fields, or ours where transformers would be wrong."""
    heads, config = list(model.heads), model.config
    if transformers_opens(config, heads) and not TWO_OUTPUTS.isdisjoint(heads):
        config = replace(config, labels=AlbertConfig.labels, problem_type=None)
    values = to_json(config) | {"dtype": str(dtype).removeprefix("torch.")}
    if transformers_opens(config, heads):
        return {"architectures": [architecture(heads)], "model_type": "albert"} | values
    ours = {name: getattr(model.config, name) for name in (OURS if model.config.is_relaxed else OURS[:1])}
    return {"model_type": "albert-lite", **ours, "heads": heads} | values


def weights_path(folder: Path) -> Path:
    """Find the safetensors file of a folder; say what to do when there is another kind."""
    path = folder / "model.safetensors"
    if path.is_file():
        return path
    for name in ("pytorch_model.bin", "tf_model.h5", "model.ckpt-best.index"):
        if (folder / name).exists():
            raise ModelError(f"{folder}: has {name} but no model.safetensors: run `albert convert {folder} --out …`")
    if (folder / "model.safetensors.index.json").exists():
        raise ModelError(f"{folder}: the weights are split over several files: save them again as one file")
    if any((folder / name).is_dir() for name in ("onnx", "openvino")):
        raise ModelError(f"{folder}: an export for other programs, without model.safetensors: give the model it is of")
    raise ModelError(f"{folder}: no model.safetensors: not a model folder")


def stored_heads(values: Mapping[str, Any], *, source: Path) -> tuple[str, ...]:
    """Read which heads a folder was written with."""
    if values.get("model_type") == "albert-lite":
        heads = values.get("heads", [])
        if not isinstance(heads, list) or any(not isinstance(head, str) or head not in HEADS for head in heads):
            raise ModelError(f"{source}: heads={heads!r}; known: {', '.join(HEADS)}")
        return tuple(heads)
    names = values.get("architectures") or ["AlbertModel"]
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str) or names[0] not in ARCHITECTURES:
        raise ModelError(f"{source}: architectures={names!r}; known: {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[names[0]]


def _with_prefix(name: str) -> str:
    """Name a tensor as with heads: a bare AlbertModel's file drops the leading `albert.`."""
    bare = name.startswith(("embeddings.", "encoder.", "pooler."))
    return BACKBONE + name if bare else name


def _keeps_projection(config: AlbertConfig, found: Mapping[str, str], path: Path) -> bool:
    """Tell whether a folder with E = H has a projection that does something."""
    if config.embedding_size != config.hidden_size:
        return False
    names = [found.get(f"{BACKBONE}encoder.embedding_hidden_mapping_in.{part}") for part in ("weight", "bias")]
    if names[0] is None or names[1] is None:
        return False
    weight, bias = read_tensors(path, [names[0], names[1]])
    size = config.hidden_size
    if weight.shape != (size, size) or bias.shape != (size,):
        return True  # the comparison of shapes will name it
    return not (torch.equal(weight.float(), torch.eye(size)) and not bias.any())


def _compare(
    entries: Sequence[Entry], shapes: Mapping[str, tuple[int, ...]], config: AlbertConfig, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Compare a file with what the configuration expects; every defect of the backbone in one error."""
    expected = {entry.hf: entry for entry in entries}
    optional = {f"{BACKBONE}pooler.weight", f"{BACKBONE}pooler.bias"}
    if not config.has_projection:
        optional |= {f"{BACKBONE}encoder.embedding_hidden_mapping_in.{part}" for part in ("weight", "bias")}
    problems, new = [], []
    for hf, entry in expected.items():
        if hf not in shapes:
            if hf.startswith(BACKBONE) and hf not in optional:
                problems.append(f"missing {hf} {list(entry.shape)}")
            else:
                new.append(entry.ours)
        elif shapes[hf] != entry.shape:
            if hf.startswith("classifier."):  # another task's classifier: a new head, as everywhere
                new.append(entry.ours)
            else:
                problems.append(f"{hf} is {list(shapes[hf])}, should be {list(entry.shape)}")
    extra = [hf for hf in shapes if hf not in expected]
    problems += [
        f"unexpected {hf} {list(shapes[hf])}" for hf in extra if hf.startswith(BACKBONE) and hf not in optional
    ]
    if problems:
        shown = "\n  ".join(problems[:40]) + (f"\n  … and {len(problems) - 40} more" if len(problems) > 40 else "")
        raise ModelError(f"{path}: does not fit its config.json:\n  {shown}")
    heads = {name.split(".")[1] for name in new if name.startswith("heads.")}
    new = [entry.ours for entry in entries if entry.ours in new or _head_of(entry) in heads]  # a head is new as a whole
    dropped = [hf for hf in extra if not hf.startswith(BACKBONE)]
    return tuple(new), tuple(dropped)


def _head_of(entry: Entry) -> str | None:
    return entry.ours.split(".")[1] if entry.ours.startswith("heads.") else None


def _tensors(model: Albert, *, dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the tensors under transformers' names; E = H gets the identity projection that it expects."""
    parameters = dict(model.named_parameters())
    entries = expand(model.config, model.heads, pooler=model.encoder.pooler is not None)
    tensors = {entry.hf: parameters[entry.ours].detach().to("cpu", dtype).contiguous() for entry in entries}
    if len(tensors) < len(entries):
        raise UsageError(f"heads {', '.join(model.heads)}: two of them have one name in a file: save a model for each")
    if not model.config.has_projection:
        size = model.config.hidden_size
        tensors[f"{BACKBONE}encoder.embedding_hidden_mapping_in.weight"] = torch.eye(size, dtype=dtype)
        tensors[f"{BACKBONE}encoder.embedding_hidden_mapping_in.bias"] = torch.zeros(size, dtype=dtype)
    if not len(model.heads) and model.config.sharing in ("all", "none"):
        return {name.removeprefix(BACKBONE): tensor for name, tensor in tensors.items()}
    return tensors


def _plain_card(model: Albert) -> str:
    count = sum(parameter.numel() for parameter in model.parameters())
    config = model.config
    opens = (
        "Open it with `albert` or with transformers' `AutoModel…from_pretrained`."
        if transformers_opens(config, list(model.heads))
        else "Open it with `albert`: transformers has no class that computes this model."
    )
    return (
        "---\nlibrary_name: albert-lite\ntags: [albert]\n---\n# An ALBERT\n\n"
        f"{count:,} parameters: vocabulary {config.vocab_size:,}, embedding {config.embedding_size}, hidden "
        f"{config.hidden_size}, {config.num_hidden_layers} layers, sharing {config.sharing}; heads: "
        f"{', '.join(model.heads) or 'none'}.\n\n{opens}\n"
    )
