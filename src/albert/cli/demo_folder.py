"""What the demo's folder holds before its first command: settings, text, and labelled tables cut from that text.

The settings tell demos apart: a folder that has others is refused, since its results would not be this demo's.
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from albert.errors import UsageError
from albert.files import atomic_write
from albert.text.installed import InstalledDocument, hold_out, installed_documents, label_paragraphs

TRAIN_ROWS, DEV_ROWS = 1_500, 600
PRETRAIN_TOML, FINETUNE_TOML = "pretrain.toml", "finetune.toml"
PRETRAINING = """# albert demo: the recipe `laptop`, made smaller
start_from = "tiny"

[model_init]
positions = "sinusoidal"

[data]
max_length = 64
mask_prob = 0.25

[optimizer]
lr = 0.01

[grow]  # short texts first: in them a model finds its neighbours
length = [[0.0, 16], [0.4, 32], [0.7, 64]]

[train]
steps = {steps}
batch_size = 32
log_every = {log_every}
eval_every = {steps}
save_every = {save_every}

[evaluation]
examples = 500
"""
FINETUNING = """# albert demo: the same for all starts
[train]
steps = {steps}
batch_size = 32
log_every = {log_every}
eval_every = {eval_every}
"""


def prepare_folder(out: Path, steps: int) -> bool:
    """Write the settings, or refuse a folder that has others; say whether the folder is new."""
    tuning = max(5, steps // 4)
    settings = {
        PRETRAIN_TOML: PRETRAINING.format(steps=steps, log_every=max(1, steps // 50), save_every=max(10, steps // 4)),
        FINETUNE_TOML: FINETUNING.format(
            steps=tuning, log_every=max(1, tuning // 25), eval_every=math.ceil(tuning / 5)
        ),
    }
    new = not out.exists() or not any(out.iterdir())
    for name, text in settings.items():
        file = out / name
        if new:
            _write(file, text)
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            raise UsageError(
                f"{out}: is not empty and holds no demo of this version with --steps {steps}: "
                "delete the folder, or give another one with --out"
            )
    return new


def write_text(out: Path) -> tuple[int, int]:
    """Write text and tables unless they are there; give the bytes of the text to learn from and of the held-out one."""
    train, valid = out / "text" / "train.txt", out / "text" / "valid.txt"
    tables = out / "task" / "train.csv", out / "task" / "dev.csv"
    if not all(file.exists() for file in (train, valid, *tables)):
        known, held_out = hold_out(installed_documents())
        _write(train, _plain(known))
        _write(valid, _plain(held_out))
        _write(tables[0], _table(known, TRAIN_ROWS))
        _write(tables[1], _table(held_out, DEV_ROWS))
    return train.stat().st_size, valid.stat().st_size


def read_rows(table: Path) -> list[list[str]]:
    """Return text and label of each row."""
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def _plain(documents: list[InstalledDocument]) -> str:
    return "\n\n".join("\n".join(document.paragraphs) for document in documents) + "\n"


def _table(documents: list[InstalledDocument], rows: int) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["text", "label"])
    writer.writerows([row.text, row.library] for row in label_paragraphs(documents, rows))
    return table.getvalue()


def _write(file: Path, text: str) -> None:
    with atomic_write(file) as handle:
        handle.write(text.encode())
