"""Export to transformers: layers that it can't share are written out one by one, where that is exact.

Attention-only and FFN-only sharing, norms per depth and adapters become a model that shares nothing: larger, the same
answers, and `AutoModel…from_pretrained` opens it. What transformers can open anyway is written as it is.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from albert.errors import UsageError
from albert.export.check import batches_of, largest_difference, real_texts, refuse_difference
from albert.export.files import Exported
from albert.export.source import Source
from albert.inference.torch_engine import TorchEngine
from albert.model import Albert
from albert.model.encoder import Attention, FeedForward
from albert.model.folder import architecture, load_model, save_model, transformers_opens
from albert.model.relaxed import OwnParameters
from albert.tasks.saved_task import TASK_FILE, task_json


def export_hf(source: Source, out: Path) -> Exported:
    """Write a folder that transformers opens, and check it against the original."""
    model, heads = source.model, list(source.model.heads)
    if architecture(heads) is None:
        raise UsageError(f"{source.name}: transformers has no class with the heads {', '.join(heads)}")
    written = model if transformers_opens(model.config, heads) else unshared(model)
    texts = real_texts(None)
    batches = batches_of(texts, source.tokenizer, longest=model.config.max_position_embeddings)
    difference = largest_difference(TorchEngine(written), source.engine, batches)
    refuse_difference(str(out), difference)
    remembered = source.remembered
    extra = remembered.task.files(model.config) if remembered else {}
    if remembered:
        extra |= {TASK_FILE: task_json(remembered.task, name=remembered.name, columns=remembered.columns)}
    card = source.folder / "README.md"
    save_model(
        written,
        out,
        tokenizer=source.tokenizer,
        card=card.read_text(encoding="utf-8") if card.is_file() else None,
        extra=extra,
        max_length=remembered.task.max_length if remembered else None,
    )
    again = largest_difference(TorchEngine(load_model(out).model), source.engine, batches)
    refuse_difference(str(out), again)
    sizes = {str(path.relative_to(out)): path.stat().st_size for path in sorted(out.rglob("*")) if path.is_file()}
    return Exported(out, sizes, len(texts), max(difference, again))


@torch.no_grad()
def unshared(model: Albert) -> Albert:
    """Return a model that shares nothing and computes the same."""
    config = model.config
    plain = config.with_settings({"norm_per_depth": False, "adapter_rank": 0}).with_settings({"sharing": "none"})
    copy = Albert(plain, list(model.heads), pooler=model.encoder.pooler is not None)
    own = dict(model.named_parameters())
    for name, parameter in copy.named_parameters():
        if not name.startswith(("encoder.attention.", "encoder.ffn.")):
            parameter.copy_(own[name])
    for (attention, ffn, extra), (to_attention, to_ffn, _) in zip(
        model.encoder.steps(), copy.encoder.steps(), strict=True
    ):
        assert isinstance(attention, Attention)
        assert isinstance(to_attention, Attention)
        assert isinstance(ffn, FeedForward)
        assert isinstance(to_ffn, FeedForward)
        for name in ("query", "key", "value", "output"):
            getattr(to_attention, name).load_state_dict(getattr(attention, name).state_dict())
        for name in ("up", "down"):
            getattr(to_ffn, name).load_state_dict(getattr(ffn, name).state_dict())
        assert extra is None or isinstance(extra, OwnParameters)
        _copy_norm(to_attention.norm, (extra and extra.attention_norm) or attention.norm)
        _copy_norm(to_ffn.norm, (extra and extra.ffn_norm) or ffn.norm)
        if extra is not None and extra.query_up is not None and extra.query_down is not None:
            assert extra.value_up is not None
            assert extra.value_down is not None
            to_attention.query.weight += extra.query_up.weight @ extra.query_down.weight
            to_attention.value.weight += extra.value_up.weight @ extra.value_down.weight
    return copy.eval()


def _copy_norm(to: nn.LayerNorm | None, norm: nn.LayerNorm | None) -> None:
    assert to is not None
    assert norm is not None
    to.load_state_dict(norm.state_dict())
