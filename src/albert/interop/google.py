"""From Google's variables to a model: names and shapes compared with the weight table, kernels transposed.

Strict: every variable must be the model's, and every parameter of the model must be there; all that differ are in one
error. Google's "gelu" is the tanh form, which transformers calls gelu_new (its "gelu" is the erf form). TF-Hub's
names carry the prefix `module/`. Which heads there are follows from the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from albert.errors import ModelError
from albert.files import read_json
from albert.model import Albert, AlbertConfig
from albert.model.config import from_json
from albert.model.tensor_file import read_header, read_tensors
from albert.model.weights import expand

HUB_PREFIX = "module/"
CONFIG_LIMIT = 2**20
HEAD_OF = {  # a variable that shows that a head is there
    "cls/predictions/output_bias": "mlm",
    "cls/seq_relationship/output_weights": "order",
    "output_weights": "classifier",
    "cls/squad/output_weights": "span",
    "start_logits/dense/kernel": "conditional_span",
}


def read_google_config(path: Path) -> AlbertConfig:
    """Read albert_config.json; fields that Google's released encoder does not use are passed over."""
    values = read_json(path, limit=CONFIG_LIMIT)
    if values.get("hidden_act") == "gelu":
        values["hidden_act"] = "gelu_new"
    return from_json(values, source=path)


def build_from_google(weights: Path, config: AlbertConfig, *, source: Path) -> Albert:
    """Build the model that a file of Google's variables holds."""
    header = read_header(weights, ignore=lambda _: False)
    prefix = HUB_PREFIX if header and all(name.startswith(HUB_PREFIX) for name in header) else ""
    shapes = {name.removeprefix(prefix): shape for name, shape in header.items()}
    heads = [head for variable, head in HEAD_OF.items() if variable in shapes]
    if "classifier" in heads and len(shapes["output_weights"]) == 2:
        config = replace(config, labels=tuple(f"LABEL_{i}" for i in range(shapes["output_weights"][0])))
    entries = expand(config, heads, pooler=True)
    stored = {entry.tf: entry.shape[::-1] if entry.transposed else entry.shape for entry in entries}
    _compare(stored, shapes, source=source)
    with torch.device("meta"):
        model = Albert(config, heads, pooler=True)
    model.to_empty(device="cpu")
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for entry in entries:
            (tensor,) = read_tensors(weights, [prefix + entry.tf])
            parameters[entry.ours].copy_(tensor.t() if entry.transposed else tensor)
    return model.eval()


def _compare(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], *, source: Path) -> None:
    """Compare variables by name and shape; every difference in one error."""
    problems = [f"missing {name} {list(shape)}" for name, shape in expected.items() if name not in found]
    problems += [f"unexpected {name} {list(shape)}" for name, shape in found.items() if name not in expected]
    problems += [
        f"{name} is {list(found[name])}, should be {list(shape)}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    if problems:
        shown = "\n  ".join(problems[:60]) + (f"\n  … and {len(problems) - 60} more" if len(problems) > 60 else "")
        raise ModelError(f"{source}: does not fit its configuration:\n  {shown}")
