"""A file decided on a Ray cluster (Ray Data): the rows of one process, in its order, with scores within 1e-5.

One task reads the file and gives chunks of examples; actors, each with the model, decide them by the one predictor. Ray
keeps the order, holds the reader back while the actors are busy, and repeats a chunk whose worker died. Every node must
see the model folder and the file.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from albert.cluster import ray_cluster
from albert.errors import AlbertError, ResourceError, UsageError
from albert.inference.file_job import FileJob
from albert.inference.model import Model
from albert.text.documents import ReadReport

CHUNK = 512  # examples that travel together
COLUMN = "chunk"
FAILURE = re.compile(r"^[\w.]+Error: .*", re.MULTILINE)  # in the text of one of Ray's


def decide_on_cluster(job: FileJob, *, address: str | None = None, skip: int = 0) -> Iterator[Any]:
    """Return the results of a job in order, without the first `skip`."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else it prints a line about every actor's arguments
    with ray_cluster(address) as ray:
        data = _ray_data()
        context = data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it would print tracebacks
        actors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        job = _for_all_nodes(job)
        chunks = data.read_datasource(_source(data, job, skip), override_num_blocks=1, num_cpus=0)
        decided = chunks.map_batches(
            _Decider,
            fn_constructor_args=(job,),
            batch_size=1,
            num_cpus=1,
            compute=data.ActorPoolStrategy(min_size=1, max_size=actors),
        )
        try:
            for row in decided.iter_rows():
                found = pickle.loads(row[COLUMN])
                if isinstance(found, AlbertError):
                    raise found
                yield from found
        except ray.exceptions.RayError as problem:
            reason = FAILURE.search(str(problem))
            raise ResourceError(
                f"a Ray worker can't decide ({reason[0] if reason else type(problem).__name__}): "
                "is this version of albert-lite installed on every node?"
            ) from problem


def _ray_data() -> Any:
    try:
        import ray.data
    except ImportError as problem:
        raise UsageError(f"--cluster ray needs Ray Data ({problem}): pip install 'albert-lite[ray]'") from problem
    return ray.data


def _for_all_nodes(job: FileJob) -> FileJob:
    """Return the same job with paths that don't depend on the folder that a process runs in."""
    folder = Path(job.use.model)
    model = str(folder.resolve()) if folder.exists() else job.use.model
    return replace(job, use=replace(job.use, model=model), path=job.path.resolve())


def _source(data: Any, job: FileJob, skip: int) -> Any:
    """Return the file as a source of Ray Data, which one task reads."""
    from ray.data.block import BlockMetadata

    class Examples(data.Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> None:
            """Return that the size is not known."""

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            about = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [data.ReadTask(lambda: _chunks(job, skip), about)]

    return Examples()


def _chunks(job: FileJob, skip: int) -> Iterator[Any]:
    """Read the file; every chunk is a table of one row: examples, or why there are no more."""
    import pyarrow as pa

    def read() -> Iterator[list[Any] | AlbertError]:
        try:
            if not job.path.exists():
                raise UsageError(f"{job.path}: is not seen by a node of the cluster: use folders that all nodes share")
            examples = islice(job.read(job.use.open(), ReadReport()), skip, None)
            while chunk := list(islice(examples, CHUNK)):
                yield chunk
        except AlbertError as problem:  # as a value: Ray would make a traceback of it
            yield problem

    for one in read():
        yield pa.table({COLUMN: [pickle.dumps(one)]})


class _Decider:
    """An actor with the model, which it opens with its first chunk: what is wrong then is that chunk's error."""

    def __init__(self, job: FileJob) -> None:
        self._job = job

    @cached_property
    def _model(self) -> Model:
        return self._job.use.open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {COLUMN: [pickle.dumps(self._decide(pickle.loads(one))) for one in batch[COLUMN]]}

    def _decide(self, examples: list[Any] | AlbertError) -> list[Any] | AlbertError:
        if isinstance(examples, AlbertError):
            return examples
        try:
            return list(self._job.results(self._model, examples))
        except AlbertError as problem:
            return problem
