"""The model that is exported: as plain torch modules, with its task, its tokenizer and the files beside its weights."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albert.errors import DataError, UsageError
from albert.evaluate.scoring import score_splits
from albert.evaluate.tuned import open_labelled
from albert.files import read_json, write_json
from albert.inference.engine import Engine
from albert.inference.predictor import Predictor
from albert.inference.torch_engine import TorchEngine
from albert.labelled.request import DataRequest
from albert.model import Albert
from albert.model.config import OURS
from albert.model.folder import CONFIG_LIMIT, architecture, load_model, load_tokenizer
from albert.model.locate import locate
from albert.tasks.saved_task import Remembered, read_task
from albert.tokenizer import Tokenizer

VECTORS = "modules.json"  # sentence-transformers' own file
# What says how a model is used, beside configuration and tokenizer; a trainer's folder has gigabytes of other things.
KEPT = frozenset(
    {"README.md", "LICENSE", "task.json", VECTORS, "sentence_bert_config.json", "config_sentence_transformers.json"}
)
MODULE = re.compile(r"\d+_[A-Z]\w*")  # sentence-transformers' folders: 1_Pooling
CONFIG = "config.json"


@dataclass(frozen=True)
class Source:
    """A model to export."""

    name: str
    folder: Path
    model: Albert
    tokenizer: Tokenizer
    remembered: Remembered | None

    @property
    def engine(self) -> TorchEngine:
        """Return what an export must agree with: the modules themselves, in fp32."""
        return TorchEngine(self.model)

    def copy_files(self, folder: Path) -> None:
        """Write configuration and tokenizer, and copy what else says how to use the model; not the weights."""
        for path in sorted(self.folder.iterdir()):
            if path.name in KEPT:
                shutil.copyfile(path, folder / path.name)
            elif path.is_dir() and MODULE.fullmatch(path.name):
                shutil.copytree(path, folder / path.name)
        longest = self.remembered.task.max_length if self.remembered else self.model.config.max_position_embeddings
        self.tokenizer.save(folder, max_length=longest)
        write_json(folder / CONFIG, self._config())

    def _config(self) -> dict[str, Any]:
        """Return the configuration of a graph, which others open as an ALBERT: how layers share is in the graph."""
        values = read_json(self.folder / CONFIG, limit=CONFIG_LIMIT)
        if (name := architecture(list(self.model.heads))) is None:
            return values
        kept = {key: value for key, value in values.items() if key not in ("heads", *OURS)}
        return kept | {"architectures": [name], "model_type": "albert"}


def open_source(name: str, *, vectors: bool = False) -> Source:
    """Open a model to export; `vectors`: one that sentence-transformers opens without its heads, which that ignores."""
    folder = locate(name)
    loaded = load_model(folder, () if vectors and (folder / VECTORS).is_file() else None)
    if loaded.new and len(loaded.model.heads):
        raise UsageError(f"{name}: has no weights for {', '.join(loaded.new)}: it was never trained")
    model = loaded.model.eval()
    tokenizer = load_tokenizer(folder, model.config)
    return Source(name, folder, model, tokenizer, read_task(folder, model.config, list(model.heads)))


class DevScore:
    """The score of engines on a dev file, in points, by the task's own measure."""

    def __init__(self, source: Source, path: Path) -> None:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder: check the path (--dev)")
        if source.remembered is None:
            raise UsageError(f"{source.name}: has no task to score: leave --dev out")
        task = source.remembered.task
        self._opened = open_labelled(DataRequest(path), task, source.remembered.columns)
        self._tokenizer, self.measure = source.tokenizer, task.best

    def of(self, engine: Engine) -> float:
        """Return the score of an engine, in points."""
        decided = score_splits(Predictor(engine, self._tokenizer), self._opened.task, self._opened.splits, test=False)
        scores = next(own.scores for own in decided.values() if own.scores is not None)
        return 100 * scores[self.measure]
