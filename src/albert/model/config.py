"""The shape of a model: every field that changes what it computes, checked before anything is built.

Field names are transformers'. `sharing` is ours: "attention" and "ffn" (Table 4) exist in no other implementation;
"none" is the same as one group per layer. Reading from JSON trusts nothing: a hostile value is refused by name,
and no size beyond the limits below reaches an allocation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from albert.errors import AlbertError, ModelError, UsageError, did_you_mean
from albert.files import read_json

Sharing = Literal["all", "attention", "ffn", "none"]
Activation = Literal["gelu_new", "gelu", "relu"]
ProblemType = Literal["regression", "single_label_classification", "multi_label_classification"]

# In Google's files "gelu" is the tanh form; in transformers "gelu" is erf and the tanh form has these names.
ACTIVATION_ALIASES = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new"}
LIMITS = {
    "vocab_size": 4_000_000,
    "embedding_size": 65_536,
    "hidden_size": 65_536,
    "num_hidden_layers": 1_024,
    "num_hidden_groups": 1_024,
    "inner_group_num": 64,
    "num_attention_heads": 1_024,
    "intermediate_size": 262_144,
    "max_position_embeddings": 1_048_576,
    "type_vocab_size": 1_024,
}
OURS = ("sharing", "norm_per_depth", "adapter_rank")  # fields that transformers does not have
MAX_LABELS = 100_000
MAX_PARAMETERS = 20_000_000_000  # 40x the largest model of the paper


@dataclass(frozen=True)
class AlbertConfig:
    """The architecture; the defaults are ALBERT-base v2."""

    vocab_size: int = 30_000
    embedding_size: int = 128
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    sharing: Sharing = "all"
    hidden_act: Activation = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    problem_type: ProblemType | None = None
    norm_per_depth: bool = False  # relaxed sharing (model/relaxed.py): LayerNorms of its own for every depth
    adapter_rank: int = 0  # … low-rank adapters of its own on query and value; 0: none
    project_equal: bool = False  # E = H, yet a projection: only in folders that others trained with one

    def __post_init__(self) -> None:
        """Check every field; afterwards `sharing` and `num_hidden_groups` say the same thing."""
        for name, limit in LIMITS.items():
            _check_int(name, getattr(self, name), limit)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"):
            _check_float(name, getattr(self, name), 0.0, 0.999)
        _check_float("initializer_range", self.initializer_range, 1e-9, 10.0)
        _check_float("layer_norm_eps", self.layer_norm_eps, 1e-30, 1.0)
        _check_choice("sharing", self.sharing, get_args(Sharing))
        _check_choice("hidden_act", self.hidden_act, get_args(Activation))
        if self.problem_type is not None:
            _check_choice("problem_type", self.problem_type, get_args(ProblemType))
        if not 1 <= len(self.labels) <= MAX_LABELS:
            raise UsageError(f"labels: {len(self.labels)} of them, must be 1 to {MAX_LABELS:,}")
        if self.hidden_size % self.num_attention_heads:
            raise UsageError(
                f"hidden_size={self.hidden_size} is not a multiple of num_attention_heads={self.num_attention_heads}"
            )
        if self.num_hidden_groups > self.num_hidden_layers:
            raise UsageError(
                f"num_hidden_groups={self.num_hidden_groups} is more than num_hidden_layers={self.num_hidden_layers}"
            )
        if type(self.norm_per_depth) is not bool:
            raise UsageError(f"norm_per_depth={self.norm_per_depth!r} must be true or false")
        if type(self.adapter_rank) is not int or not 0 <= self.adapter_rank <= self.hidden_size:
            raise UsageError(
                f"adapter_rank={self.adapter_rank!r} must be a whole number from 0 to {self.hidden_size:,}"
            )
        if self.sharing == "none":
            object.__setattr__(self, "num_hidden_groups", self.num_hidden_layers)
        elif self.sharing == "all" and self.num_hidden_groups == self.num_hidden_layers > 1:
            object.__setattr__(self, "sharing", "none")
        if self.is_relaxed and self.sharing != "all":
            raise UsageError(f"norm_per_depth and adapter_rank relax sharing='all'; this is sharing='{self.sharing}'")
        if self.project_equal and self.embedding_size != self.hidden_size:
            object.__setattr__(self, "project_equal", False)
        if (size := self._rough_parameters()) > MAX_PARAMETERS:
            raise UsageError(f"the configuration has {size:,} parameters, more than the {MAX_PARAMETERS:,} accepted")

    @property
    def has_projection(self) -> bool:
        """Tell whether embeddings are projected from E to H."""
        return self.embedding_size != self.hidden_size or self.project_equal

    @property
    def is_relaxed(self) -> bool:
        """Tell whether depths have parameters of their own on shared layers."""
        return self.norm_per_depth or self.adapter_rank > 0

    @property
    def num_blocks(self) -> tuple[int, int]:
        """Count the attention blocks and the feed-forward blocks that hold parameters."""
        shared = self.num_hidden_groups * self.inner_group_num
        single = self.num_hidden_layers * self.inner_group_num
        match self.sharing:
            case "attention":
                return shared, single
            case "ffn":
                return single, shared
        return shared, shared

    def _rough_parameters(self) -> int:
        """Bound the parameters by arithmetic alone, before anything is built."""
        attention, ffn = self.num_blocks
        embedding = (self.vocab_size + self.max_position_embeddings + self.type_vocab_size) * self.embedding_size
        blocks = attention * 4 * self.hidden_size**2 + ffn * 2 * self.hidden_size * self.intermediate_size
        own = self.num_hidden_layers * self.inner_group_num * 4 * self.hidden_size * (self.adapter_rank + 1)
        own = own if self.is_relaxed else 0
        return embedding + self.embedding_size * self.hidden_size + blocks + own + self.hidden_size * len(self.labels)

    def with_settings(self, settings: dict[str, Any]) -> AlbertConfig:
        """Return a copy with some fields changed; an unknown field is an error that suggests the near one."""
        known = {field.name for field in fields(self)}
        for name in settings:
            if name not in known:
                raise UsageError(f"model setting '{name}' is unknown: {did_you_mean(name, known)}")
        changes = dict(settings)
        if self.sharing == "none" and "num_hidden_groups" not in changes:
            if changes.get("sharing", "none") != "none":
                changes["num_hidden_groups"] = 1
            elif "num_hidden_layers" in changes:
                changes["num_hidden_groups"] = changes["num_hidden_layers"]
        return replace(self, **changes)


def from_json(values: dict[str, Any], *, source: Path | str) -> AlbertConfig:
    """Read the fields of a config.json, transformers' or ours; fields of no effect on the model are passed over."""
    model_type = values.get("model_type", "albert")
    if model_type not in ("albert", "albert-lite"):
        raise ModelError(f"{source}: model_type is {model_type!r}, not 'albert': this is another kind of model")
    if values.get("position_embedding_type", "absolute") != "absolute":
        raise ModelError(
            f"{source}: position_embedding_type={values['position_embedding_type']!r}; only 'absolute' is known"
        )
    if values.get("is_decoder") or values.get("add_cross_attention"):
        raise ModelError(f"{source}: a decoder; ALBERT is an encoder")
    own = {field.name for field in fields(AlbertConfig)} - {"labels", "project_equal", *OURS}
    found = {name: value for name, value in values.items() if name in own and value is not None}
    missing = [name for name in ("hidden_size", "num_hidden_layers", "num_attention_heads") if name not in found]
    if missing:
        raise ModelError(f"{source}: {', '.join(missing)} missing: not the configuration of an ALBERT")
    found.setdefault("intermediate_size", 16_384)  # what transformers' AlbertConfig assumes
    act = found.get("hidden_act", "gelu_new")
    if isinstance(act, str):
        found["hidden_act"] = ACTIVATION_ALIASES.get(act, act)
    if model_type == "albert-lite":
        found |= {name: values[name] for name in OURS if name in values}
    labels = _labels(values, source=source)
    if labels:
        found["labels"] = labels
    try:
        return AlbertConfig(**found)
    except AlbertError as error:
        raise ModelError(f"{source}: {error}") from error


def read_config(path: Path | str) -> AlbertConfig:
    """Read a config.json file."""
    return from_json(read_json(path, limit=8 * 2**20), source=path)


def to_json(config: AlbertConfig) -> dict[str, Any]:
    """Return the fields that transformers' AlbertConfig has, under its names."""
    skipped = {"labels", "project_equal", "problem_type", *OURS}
    values: dict[str, Any] = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in skipped}
    values |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "position_embedding_type": "absolute"}
    values["id2label"] = {str(i): label for i, label in enumerate(config.labels)}
    values["label2id"] = {label: i for i, label in enumerate(config.labels)}
    if config.problem_type:
        values["problem_type"] = config.problem_type
    return values


def _labels(values: dict[str, Any], *, source: Path | str) -> tuple[str, ...]:
    names = values.get("id2label")
    if names is None:
        count = values.get("num_labels")
        if count is None:
            return ()
        if type(count) is not int or not 1 <= count <= MAX_LABELS:
            raise ModelError(f"{source}: num_labels={count!r} must be a whole number from 1 to {MAX_LABELS:,}")
        return tuple(f"LABEL_{i}" for i in range(count))
    if not isinstance(names, dict) or len(names) > MAX_LABELS:
        raise ModelError(f"{source}: id2label must map up to {MAX_LABELS:,} numbers to names")
    expected = {str(i) for i in range(len(names))}
    if {str(key) for key in names} != expected:
        raise ModelError(f"{source}: id2label must have the keys 0 to {len(names) - 1}")
    by_key = {str(key): str(name) for key, name in names.items()}
    return tuple(by_key[str(i)] for i in range(len(names)))


def _check_int(name: str, value: object, limit: int) -> None:
    if type(value) is not int or not 1 <= value <= limit:
        raise UsageError(f"{name}={value!r} must be a whole number from 1 to {limit:,}")


def _check_float(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{name}={value!r} must be a number from {low:g} to {high:g}")
    if not low <= value <= high:
        raise UsageError(f"{name}={value!r} must be a number from {low:g} to {high:g}")


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name}={value!r} is unknown: {did_you_mean(str(value), known)}")
