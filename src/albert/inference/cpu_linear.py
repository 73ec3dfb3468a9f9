"""Linear layers of a model that is only used, in the forms that are multiplied fastest: on a CPU, oneDNN's own layouts.

Weights are laid out once (1.2-1.4x of nn.Linear on an AMD CPU, where MKL does not use all it has), the non-linearity
that follows is part of the kernel, and query, key and value are one product. In bf16 it is the products and attention
that are: residuals, norms, embedding, pooler and heads stay in fp32, and every sum is in fp32. int8 is
`inference/int8.py`. The kernels are those that torch.compile generates calls of; torch.ao.quantization, its quantised
tensors and FBGEMM's packed weights are deprecated since 2.10. A packed layer can't be trained.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from albert.batch import rounded
from albert.errors import UsageError
from albert.hardware import read_cpuinfo
from albert.inference.int8 import FULL, SAFE, has_vnni, quantise
from albert.model import Albert
from albert.model.config import Activation
from albert.model.encoder import Attention, FeedForward

ZERO = 128  # activations are unsigned: with signed ones oneDNN has no fast kernel for VNNI
KERNELS = "128"  # that oneDNN keeps; its 1,024 are a gigabyte in bf16, where attention has one for every shape
ACTIVATIONS = {None: ("none", ""), "gelu_new": ("gelu", "tanh"), "gelu": ("gelu", "none"), "relu": ("relu", "")}


class PackedLinear(nn.Module):
    """A linear layer in oneDNN's layout, in fp32 or bf16, and perhaps the non-linearity after it.

    A CPU that does not multiply in bf16 gets weights of bf16 and products in fp32: with AVX-512 alone oneDNN would take
    three times as long, and on AVX2 it refuses.
    """

    def __init__(self, linear: nn.Linear, activation: Activation | None = None, *, bf16: bool = False) -> None:
        super().__init__()
        self.activation, self.algorithm = ACTIVATIONS[activation]
        self.dtype = torch.bfloat16 if bf16 and has_bf16() else torch.float32
        self.bias, weight = linear.bias.detach(), linear.weight.detach()
        weight = (weight.bfloat16() if bf16 else weight).to(self.dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, None)

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[0]
        if added := rounded(count) - count:  # oneDNN keeps a megabyte for every count that it meets
            x = F.pad(x, (0, 0, 0, added))
        y = torch.ops.mkldnn._linear_pointwise.default(
            x.to(self.dtype), self.weight, self.bias, self.activation, [], self.algorithm
        )
        return y[:count] if added else y


class Bf16Linear(nn.Module):
    """A linear layer in bf16 by PyTorch's own product, where there is no oneDNN: on a GPU."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight.detach().bfloat16(), linear.bias.detach().bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.bfloat16(), self.weight, self.bias)


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


def pack_linears(model: Albert, *, precision: str) -> Albert:
    """Put packed layers in place of the layers' matrices; return the model, now for use alone."""
    onednn = _has_onednn(model)
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", KERNELS)  # read when oneDNN is first called
    if precision == "int8":
        if not onednn:
            raise UsageError(
                f"precision int8: torch has no such kernels for {model.device.type} here: use fp32, or the engine "
                "onnx or openvino"
            )
        largest = FULL if has_vnni() else SAFE
        return _replaced(model, partial(Int8Linear, largest=largest))
    if onednn:
        return _replaced(model, partial(PackedLinear, bf16=precision == "bf16"), fused=True)
    return _replaced(model, Bf16Linear) if precision == "bf16" else model


def _replaced(model: Albert, packed: Callable[..., nn.Module], *, fused: bool = False) -> Albert:
    """Replace the matrices of all layers; `fused`: what replaces them applies the non-linearity too."""
    for attention in model.encoder.attention:
        assert isinstance(attention, Attention)
        attention.set_submodule("dropout", nn.Identity())  # a call that does nothing costs 3 us
        attention.together = packed(attention.joined())
        attention.set_submodule("output", packed(attention.output))
        del attention.query, attention.key, attention.value
    for ffn in model.encoder.ffn:
        assert isinstance(ffn, FeedForward)
        ffn.set_submodule("dropout", nn.Identity())
        ffn.set_submodule("up", packed(ffn.up, ffn.activation) if fused else packed(ffn.up))
        ffn.set_submodule("down", packed(ffn.down))
        ffn.activation = None if fused else ffn.activation
    return model


def has_bf16() -> bool:
    """Tell whether the CPU multiplies in bf16 by itself (AVX512_BF16, AMX, ARM's BF16), so that it is faster there."""
    there: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()  # a lower ceiling of oneDNN counts too
    return there and "bf16" in read_cpuinfo()


def _has_onednn(model: Albert) -> bool:
    weight = model.encoder.embeddings.word.weight
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and weight.device.type == "cpu" and weight.dtype == torch.float32
