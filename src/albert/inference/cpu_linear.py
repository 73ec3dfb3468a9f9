"""Linear layers of a model that is only used, in the forms that a CPU multiplies fastest: oneDNN's own layouts.

fp32 weights are laid out once (1.2-1.4x of nn.Linear on an AMD CPU, where MKL does not use all it has), and the
non-linearity that follows is part of the kernel; int8 is `inference/int8.py`. The kernels are those that torch.compile
generates calls of; torch.ao.quantization, its quantised tensors and FBGEMM's packed weights are deprecated since 2.10.
A packed layer can't be trained.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from albert.batch import rounded
from albert.errors import UsageError
from albert.inference.int8 import FULL, SAFE, has_vnni, matrices, quantise
from albert.model import Albert
from albert.model.config import Activation
from albert.model.encoder import FeedForward

ZERO = 128  # activations are unsigned: with signed ones oneDNN has no fast kernel for VNNI


ACTIVATIONS = {None: ("none", ""), "gelu_new": ("gelu", "tanh"), "gelu": ("gelu", "none"), "relu": ("relu", "")}


class PackedLinear(nn.Module):
    """An fp32 linear layer in oneDNN's layout, and perhaps the non-linearity after it."""

    def __init__(self, linear: nn.Linear, activation: Activation | None = None) -> None:
        super().__init__()
        self.activation, self.algorithm = ACTIVATIONS[activation]
        self.bias = linear.bias.detach()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), None)

    def forward(self, x: Tensor) -> Tensor:
        count = len(x)
        if added := rounded(count) - count:  # oneDNN keeps a megabyte for every count that it meets
            x = F.pad(x, (0, 0, 0, added))
        y = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, self.activation, [], self.algorithm)
        return y[:count] if added else y


class Int8Linear(nn.Module):
    """A linear layer in int8, its activations scaled token by token."""

    def __init__(self, linear: nn.Linear, *, largest: int) -> None:
        super().__init__()
        weight, scales = quantise(linear.weight.detach().float().numpy(), largest=largest)
        self.bias, self.scales = linear.bias.detach(), torch.from_numpy(scales)
        self.zeros = torch.zeros(len(scales), dtype=torch.int32)
        self.weight = torch.ops.onednn.qlinear_prepack(torch.from_numpy(weight), None)

    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=1, keepdim=True).clamp_min_(1e-12).div_(127)  # [T, 1]
        small = x.div(scale).add_(ZERO + 0.5).to(torch.uint8)  # rounded: the conversion cuts
        product = torch.ops.onednn.qlinear_pointwise(
            small, 1.0, ZERO, self.weight, self.scales, self.zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return torch.addcmul(self.bias, product, scale)


def pack_linears(model: Albert, *, int8: bool, kept: Collection[str] = ()) -> Albert:
    """Put packed layers in place of the layers' matrices, those `kept` in fp32; return the model, now for use alone."""
    if not _supported(model):
        if int8:
            raise UsageError(
                f"precision int8: torch has no such kernels for {model.device.type} here: use fp32, or the engine "
                "onnx or openvino"
            )
        return model
    largest = FULL if has_vnni() else SAFE
    for matrix, name in matrices(model):
        linear = model.encoder.get_submodule(name)
        assert isinstance(linear, nn.Linear)
        if int8 and matrix not in kept:
            model.encoder.set_submodule(name, Int8Linear(linear, largest=largest))
            continue
        activation: Activation | None = None
        if matrix == "up":
            ffn = model.encoder.get_submodule(name.rpartition(".")[0])
            assert isinstance(ffn, FeedForward)
            activation, ffn.activation = ffn.activation, None
        model.encoder.set_submodule(name, PackedLinear(linear, activation))
    return model


def _supported(model: Albert) -> bool:
    weight = model.encoder.embeddings.word.weight
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and weight.device.type == "cpu" and weight.dtype == torch.float32
