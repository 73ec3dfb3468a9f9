"""Two rows of a study on a real Ray of two nodes have the scores of this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from albert.errors import UsageError
from albert.study.engines import Engine, run_jobs
from albert.study.resolve import Request, resolve
from albert.study.run import jobs_of
from albert.study.tables import Row, Study
from albert.study.workshop import TIMES, Job, Workshop
from ray_nodes import two_nodes

pytestmark = pytest.mark.cluster

ONE, TWO = ({"model.num_hidden_layers": layers} for layers in (1, 2))
PAIR = Study("pair", "?", "Table 0", (Row("one", ONE), Row("two", TWO, start="one")))
TOY = {
    "model.hidden_size": 32, "model.embedding_size": 16, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "data.max_length": 32, "grow.length": [[0.0, 16], [0.5, 32]], "train.batch_size": 4, "evaluation.examples": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with two_nodes() as nodes:
        yield nodes.address


def scores(shop: Workshop, jobs: list[Job]) -> list[dict[str, Any]]:
    found = [json.loads((shop.folder(job.run) / "scores.json").read_text()) for job in jobs]
    return [{name: value for name, value in one.items() if name not in TIMES} for one in found]


def test_two_rows_on_a_cluster_have_the_scores_of_this_process(
    store_folder: Path, held_out: Path, tmp_path: Path, address: str
) -> None:
    request = Request(store_folder, held_out, steps=8, changes=TOY)
    jobs = jobs_of(resolve(PAIR, request, pace=lambda _: 1.0))
    here, there = (Workshop(tmp_path / name, store_folder, held_out) for name in ("here", "there"))
    there.out.mkdir()
    run_jobs(jobs, here, Engine())
    run_jobs(jobs, there, Engine(cluster=True, address=address))
    assert scores(there, jobs) == scores(here, jobs)
    with pytest.raises(UsageError, match="folders that all nodes share"):
        run_jobs(jobs, replace(there, out=tmp_path / "nowhere"), Engine(cluster=True, address=address))
