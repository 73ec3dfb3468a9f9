"""What a fine-tuning run starts from: a model, its tokenizer, and a head for the task.

The encoder is taken over. The head is too if the model has been tuned for the same task and labels; for any other task
it is new, also where its shape happens to fit. So an MNLI model is a start for RTE, STS-B and MRPC, as in the paper's
Table 9.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import torch

from albert.errors import ModelError, UsageError
from albert.files import read_json, sha256
from albert.finetune.settings import Freeze, TuneSettings
from albert.model import Albert, new_model
from albert.model.albert import initialise
from albert.model.config import AlbertConfig, from_json
from albert.model.folder import CONFIG_LIMIT, load_model, load_tokenizer, stored_heads, weights_path
from albert.model.locate import locate
from albert.tasks.saved_task import read_task
from albert.tasks.task import AnyTask
from albert.tokenizer import Tokenizer
from albert.tokenizer.folder import has_tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """A model folder as a run begins with it; the weights are read anew for every run."""

    folder: Path
    config: AlbertConfig
    heads: tuple[str, ...]
    tokenizer: Tokenizer
    fingerprint: str  # of the weights
    tuned_for: str = ""  # the name of the task, where it says so

    @classmethod
    def find(cls, name: str) -> Start:
        """Find the folder that a model argument means; a run folder means its model."""
        folder = locate(name)
        if not (folder / "config.json").exists() and (folder / "model" / "config.json").exists():
            folder = folder / "model"
        values = read_json(folder / "config.json", limit=CONFIG_LIMIT)
        if not has_tokenizer(folder):
            raise ModelError(f"{folder}: has no spiece.model: a model is tuned with its own tokenizer; put it there")
        config = from_json(values, source=folder / "config.json")
        tokenizer = load_tokenizer(folder, config)
        heads = stored_heads(values, source=folder / "config.json")
        remembered = read_task(folder, config, heads)
        name = remembered.name if remembered else ""
        return cls(folder, config, heads, tokenizer, sha256(weights_path(folder)), name)

    @property
    def is_tuned(self) -> bool:
        """Tell whether the pooler was tuned for a task before."""
        return not {"classifier", "choice"}.isdisjoint(self.heads)

    def keeps_head(self, task: AnyTask, *, name: str) -> bool:
        """Tell whether the model already has the head of this very task: own data are known by their labels only."""
        named = {self.tuned_for, name} - {"", task.kind}  # 0 and 1 are the labels of SST-2, of CoLA and of MRPC
        return set(task.heads) <= set(self.heads) and task.configure(self.config) == self.config and len(named) < 2

    def build(self, task: AnyTask, settings: TuneSettings, *, name: str = "", seed: int) -> Albert:
        """Read the weights, with a head for the task; a new head, or a whole new model, is drawn with `seed`."""
        if not task.heads and settings.freeze in ("backbone", "encoder"):
            raise UsageError(f"tune.freeze={settings.freeze!r}: {task.kind} has no head, so nothing is left to train")
        config = task.configure(self.config)
        if settings.dropout is not None:
            config = config.with_settings(
                {"hidden_dropout_prob": settings.dropout, "attention_probs_dropout_prob": settings.dropout}
            )
        if settings.classifier_dropout is not None:
            config = config.with_settings({"classifier_dropout_prob": settings.classifier_dropout})
        if settings.start == "random":
            model = new_model(config, task.heads, seed=seed)
        else:
            fresh = () if self.keeps_head(task, name=name) else task.heads
            loaded = load_model(self.folder, task.heads, seed=seed, config=config, fresh=fresh)
            model = loaded.model
            if settings.freeze == "encoder" and any(name.startswith("encoder.") for name in loaded.new):
                raise UsageError(
                    f"tune.freeze='encoder': {self.folder} has no pooler, and a new one would never be trained: "
                    "use tune.freeze='backbone'"
                )
            if settings.pooler == "new" and task.heads and model.encoder.pooler is not None:
                generator = torch.Generator().manual_seed(seed)
                initialise(model.encoder.pooler, config.initializer_range, generator=generator)
        freeze(model, settings.freeze)
        if not task.heads and model.encoder.pooler is not None:
            model.encoder.pooler.requires_grad_(False)  # nothing reads it
        return model


def freeze(model: Albert, part: Freeze) -> None:
    """Keep a part as it is: the embeddings, all but pooler and head (`backbone`), or all but the head (`encoder`)."""
    if part == "none":
        return
    for name, parameter in model.encoder.named_parameters():
        is_embedding, is_pooler = name.startswith("embeddings."), name.startswith("pooler.")
        if part == "encoder" or (part == "backbone" and not is_pooler) or (part == "embeddings" and is_embedding):
            parameter.requires_grad_(False)
