"""The model card of a tuned model: what it decides, how well, and what it was made from."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from albert.files import atomic_write
from albert.finetune.preparation import Prepared
from albert.finetune.settings import FinetuneSettings
from albert.tasks.task import AnyTask

MAX_LABELS_SHOWN = 20


def model_card(
    prepared: Prepared,
    settings: FinetuneSettings,
    *,
    scores: Mapping[str, float],
    test: Mapping[str, float] | None = None,
    summary: Mapping[str, Any] | None = None,
) -> str:
    """Write the card of a model; `summary` tells of the other runs, where there are several."""
    task = prepared.task
    labels = getattr(task, "labels", ())
    shown = ", ".join(str(label) for label in labels[:MAX_LABELS_SHOWN]) + (
        " …" if len(labels) > MAX_LABELS_SHOWN else ""
    )
    lines = [
        "---\nlibrary_name: albert-lite\ntags: [albert]\n---",
        f"# An ALBERT for {prepared.name}\n",
        f"A {task.kind} model" + (f" for the labels: {shown}." if labels else ".") + "\n",
        "| on dev | |\n|---|---|",
        *(f"| {name.removeprefix('valid_').replace('_', ' ')} | {value:.4f} |" for name, value in scores.items()),
        *_to_beat(prepared),
        "",
    ]
    if test:
        lines += [
            "| on test | |\n|---|---|",
            *(f"| {name.removeprefix('test_').replace('_', ' ')} | {value:.4f} |" for name, value in test.items()),
            "",
        ]
    if summary is not None:
        lines.append(_spread(summary))
    lines.append(_use(task))
    if getattr(task, "capitals", False):
        lines.append("Words with capitals are of segment 1: other programs must give them so (`token_type_ids`).\n")
    if getattr(task, "long", "first") == "mean":
        lines.append(
            f"Longer texts are read in windows of {task.max_length} tokens, and the mean of their logits decides; "
            f"transformers' pipeline reads their first {task.max_length} tokens alone.\n"
        )
    lines += [
        f"- started from: {prepared.model} (weights sha256 {prepared.start.fingerprint})",
        f"- data: {prepared.items.examples:,} training examples, fingerprint {prepared.data}",
        f"- rate {settings.optimizer.lr}, batch {settings.train.batch_size}, {settings.train.steps:,} steps at most, "
        f"sequences of {task.max_length} tokens at most",
        f"- command: `{shlex.join(['albert', *sys.argv[1:]])}`",
        "\nDev chose the best step and the best run, so its scores are a little too good."
        + (" Test was scored once, at the end.\n" if test else "\n"),
    ]
    return "\n".join(lines)


def _to_beat(prepared: Prepared) -> list[str]:
    """Return the rows of what the model is compared with."""
    name = prepared.task.best.replace("_", " ")
    rows = [f"| {name}, baseline that reads no text | {prepared.baseline:.4f} |"]
    if prepared.bag_of_words is not None:
        rows.append(f"| {name}, bag of words (TF-IDF, linear model) | {prepared.bag_of_words:.4f} |")
    return rows


def write_card(folder: Path, card: str) -> None:
    """Replace the card of a model folder."""
    with atomic_write(folder / "README.md") as file:
        file.write(card.encode())


def _use(task: AnyTask) -> str:
    """Show how to use the model, from Python and from a shell."""
    call, words = task.usage
    return (
        f'```python\nimport albert\n\nmodel = albert.load("MODEL-FOLDER")\nmodel.{call}\n```\n\n'
        f"```sh\nalbert predict MODEL-FOLDER {words}\nalbert predict MODEL-FOLDER FILE --out decisions.jsonl\n```\n"
        + (
            f"```python\nfrom transformers import pipeline\n\n"
            f'pipeline("{task.pipeline}", "MODEL-FOLDER", truncation=True)("A man came.")\n```\n'
            if task.pipeline
            else ""
        )
    )


def _spread(summary: Mapping[str, Any]) -> str:
    if "median" not in summary or len(summary["runs"]) == 1:
        return ""
    rows = "".join(
        f"| {run['folder']} | {'-' if run['score'] is None else format(run['score'], '.4f')} | {run['lr']:.2g} |\n"
        for run in summary["runs"]
    )
    words = f"The best of {len(summary['runs'])} attempts with one seed."
    if summary["seeds"] > 1:
        words = (
            f"The best of {summary['seeds']} seeds: median {summary['median']:.4f}, mean {summary['mean']:.4f}, "
            f"from {summary['lowest']:.4f} to {summary['highest']:.4f}, deviation {summary['deviation']:.4f}."
        )
    return f"{words}\n\n| run | {summary['score'].replace('_', ' ')} | rate |\n|---|---|---|\n{rows}\n"
