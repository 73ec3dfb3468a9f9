"""From files to splits, for tasks whose data is one file per split: read, hold out, fingerprint.

A reader of such a task says how a file becomes examples and what makes two examples the same; the rest is here. When a
model is evaluated there is nothing to train on: the file is the dev set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from albert.labelled.request import DataRequest, Opened
from albert.labelled.splits import divide, fingerprint
from albert.tasks.task import AnyTask, ExampleT


def open_files(
    request: DataRequest,
    task: AnyTask,
    *,
    read: Callable[[Path], Sequence[ExampleT]],
    key: Callable[[ExampleT], str],
    evaluated: bool,
    columns: Mapping[str, str],
    notes: list[str],
    group: Callable[[ExampleT], str] | None = None,
) -> Opened:
    """Open the files of a request; `evaluated`: the task is a model's, and its data is not to be trained on."""
    data = read(request.data)
    dev = {"dev": data} if evaluated else {}
    if request.dev is not None:
        dev = {"dev": read(request.dev)}
    test = {"test": read(request.test)} if request.test is not None else {}
    splits = divide(request, [] if evaluated else data, dev=dev, test=test, key=key, notes=notes, group=group)
    files = [path for path in (request.data, request.dev, request.test) if path is not None]
    return Opened(task, splits, notes, fingerprint(files, request), columns)
