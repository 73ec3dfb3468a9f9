"""The same build on a real Ray cluster of two nodes, with workers and nodes that die in the middle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from albert.data import encode, engines
from albert.data.build import BuildProgress, build_store
from albert.data.engines import Engine, LocalEngine, RayEngine
from albert.data.plan import BuildSettings
from albert.errors import ResourceError
from albert.tokenizer import Tokenizer
from ray_nodes import two_nodes

pytestmark = pytest.mark.cluster

SETTINGS = BuildSettings(part_size=1_000_000)  # some seconds of work in a dozen parts: time to kill in the middle


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, prose: Callable[..., str]) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text(prose(2000, sentences=20) * 3)
    return path


@pytest.fixture(scope="module")
def build(corpus: Path, real_tokenizer: Tokenizer) -> Callable[..., Any]:
    def build(folder: Path, engine: Engine, **options: Any) -> Any:
        return build_store([corpus], folder, tokenizer=real_tokenizer, settings=SETTINGS, engine=engine, **options)

    return build


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, build: Callable[..., Any]) -> dict[str, bytes]:
    """Build locally."""
    return _files(build(tmp_path_factory.mktemp("local") / "store", LocalEngine(2)).store.folder)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Start two nodes of one CPU each on this machine, every one with its own scheduler and object store."""
    with two_nodes() as nodes:
        yield nodes


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def _working() -> dict[int, int]:
    """Find the Ray workers that are in the middle of a part (their title names the task), and the node of each."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::_encode_on_cluster"):
                found[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


class _KillOnce:
    """A progress function that kills a busy worker after the first shard."""

    def __init__(self) -> None:
        self.killed: list[int] = []

    def __call__(self, _: BuildProgress) -> None:
        for _attempt in range(500):
            if self.killed:
                return
            for pid in list(_working())[:1]:
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
            time.sleep(0.01)


def test_two_nodes_give_the_bytes_of_the_local_build(
    tmp_path: Path, cluster: Any, build: Callable[..., Any], expected: dict[str, bytes]
) -> None:
    nodes: set[int] = set()
    result = build(tmp_path / "store", RayEngine(cluster.address), progress=lambda _: nodes.update(_working().values()))
    assert len(nodes) == 2
    assert result.num_built == len(result.store.shards) >= 10
    assert _files(tmp_path / "store") == expected


def test_a_worker_killed_in_the_middle_of_a_part_changes_nothing(
    tmp_path: Path, cluster: Any, build: Callable[..., Any], expected: dict[str, bytes]
) -> None:
    kill = _KillOnce()
    build(tmp_path / "store", RayEngine(cluster.address), progress=kill)
    assert len(kill.killed) == 1
    assert _files(tmp_path / "store") == expected


def test_a_node_that_dies_in_the_middle_changes_nothing(
    tmp_path: Path, cluster: Any, build: Callable[..., Any], expected: dict[str, bytes]
) -> None:
    nodes = list(cluster.worker_nodes)

    def kill_node(_: BuildProgress) -> None:
        if nodes:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    build(tmp_path / "store", RayEngine(cluster.address), progress=kill_node)
    assert not nodes
    assert _files(tmp_path / "store") == expected


def test_a_part_that_kills_every_worker_is_one_clear_error_and_the_build_continues(
    tmp_path: Path,
    cluster: Any,
    build: Callable[..., Any],
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "RETRIES", 0)
    with pytest.raises(ResourceError, match="a Ray worker died 1 time"):
        build(tmp_path / "store", RayEngine(cluster.address), progress=_KillOnce())
    result = build(tmp_path / "store", LocalEngine(1))
    assert 0 < result.num_built < len(result.store.shards)
    assert _files(tmp_path / "store") == expected


def test_a_node_with_other_software_is_refused_in_one_line(
    tmp_path: Path, cluster: Any, build: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode.Job, "__init__", _with_other_versions(encode.Job.__init__))
    with pytest.raises(ResourceError, match=r"^a worker has .*, the build began with .*'sentencex': '99'.*install"):
        build(tmp_path / "store", RayEngine(cluster.address))


def _with_other_versions(init: Callable[..., None]) -> Callable[..., None]:
    def wrapped(self: Any, *arguments: Any) -> None:
        init(self, *arguments, versions={"sentencex": "99"})

    return wrapped


def test_a_cluster_that_is_not_there_is_one_clear_error(tmp_path: Path, build: Callable[..., Any]) -> None:
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"):
        with pytest.raises(ResourceError, match=f"no Ray cluster at {address}: "):
            build(tmp_path / "store", RayEngine(address))
