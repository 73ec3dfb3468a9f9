"""The models of the paper by name, and two sizes for laptops and tests.

ALBERT v1 and v2 differ in dropout (v2 has none, nor has v1's xxlarge: google-research/albert#23). Both use the tanh
GELU: the v1 files on the hub say "gelu", which transformers reads as the erf form, but Google's code means tanh by it.
The released xlarge configurations say 16 heads, the paper's rule gives 32: `num_attention_heads=32` is the paper's.
The BERTs are the paper's baselines: the same code with E = H and nothing shared.
"""

from __future__ import annotations

from albert.errors import ModelError, did_you_mean
from albert.model.config import AlbertConfig


def _shape(hidden: int, layers: int, heads: int, *, dropout: float = 0.0, embedding: int = 128) -> AlbertConfig:
    return AlbertConfig(
        embedding_size=embedding,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


def _bert(hidden: int, layers: int) -> AlbertConfig:
    shape = _shape(hidden, layers, hidden // 64, dropout=0.1, embedding=hidden)
    return shape.with_settings({"sharing": "none"})


PRESETS: dict[str, AlbertConfig] = {
    "tiny": _shape(128, 4, 2, embedding=64),
    "small": _shape(256, 6, 4),
    "albert-base-v1": _shape(768, 12, 12, dropout=0.1),
    "albert-large-v1": _shape(1024, 24, 16, dropout=0.1),
    "albert-xlarge-v1": _shape(2048, 24, 16, dropout=0.1),
    "albert-xxlarge-v1": _shape(4096, 12, 64),
    "albert-base-v2": _shape(768, 12, 12),
    "albert-large-v2": _shape(1024, 24, 16),
    "albert-xlarge-v2": _shape(2048, 24, 16),
    "albert-xxlarge-v2": _shape(4096, 12, 64),
    "bert-base": _bert(768, 12),
    "bert-large": _bert(1024, 24),
    "bert-xlarge": _bert(2048, 24),
}


def full_name(name: str) -> str | None:
    """Complete a short name: `base` and `albert-base` are `albert-base-v2`. None if there is no such preset."""
    for candidate in (name, f"{name}-v2", f"albert-{name}", f"albert-{name}-v2"):
        if candidate in PRESETS:
            return candidate
    return None


def preset(name: str) -> AlbertConfig:
    """Return the configuration of a preset."""
    known = full_name(name)
    if known is None:
        short = {preset.removeprefix("albert-").removesuffix("-v2") for preset in PRESETS}
        raise ModelError(f"'{name}' is neither a model folder nor a preset: {did_you_mean(name, short)}")
    return PRESETS[known]
