"""The Ray Serve application on a real Ray: the answers of one process from two replicas, refusals and health alike."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import albert
from albert.errors import UsageError
from servers import Running, free_port

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def fleet(folders: dict[str, str]) -> Iterator[Running]:
    """Serve two models by two replicas."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = pytest.importorskip("ray")
    from ray import serve

    from albert.serve.ray_app import app

    ray.init(num_cpus=3, object_store_memory=100 * 2**20, include_dashboard=False, log_to_driver=False)
    port = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    models = {name: folders[name] for name in ("plain", "film")}
    built = app({"models": models, "api_keys": "sesame", "max_inputs": 200, "engine": "torch"})
    built = app_with(built, num_replicas=2)
    serve.run(built, name="albert")
    yield Running(port, None)  # type: ignore[arg-type]
    serve.shutdown()
    ray.shutdown()


def app_with(built: Any, **options: Any) -> Any:
    """Return an application whose deployment has other options, as a configuration file would say."""
    deployment = built._bound_deployment
    return deployment.options(**options).bind(*deployment.init_args)


def test_a_fleet_gives_the_answers_of_one_process(fleet: Running, folders: dict[str, str], texts: list[str]) -> None:
    truth = albert.load(folders["plain"]).embed(texts)
    classes = albert.load(folders["film"]).classify(texts)

    def client(number: int) -> None:
        for i in range(number, len(texts), 8):
            answer = fleet.ask(
                "POST", "/embed", {"inputs": texts[i], "normalize": False}, Authorization="Bearer sesame"
            )
            assert answer.status == 200
            assert np.allclose(answer.body[0], truth[i], atol=1e-5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    answer = fleet.ask("POST", "/predict", {"inputs": [[text] for text in texts]}, Authorization="Bearer sesame")
    assert [one[0]["label"] for one in answer.body] == [one.label for one in classes]


def test_a_fleet_refuses_what_a_server_refuses(fleet: Running) -> None:
    body = {"inputs": "a ship"}
    assert fleet.ask("POST", "/embed", body).status == 401
    assert fleet.ask("POST", "/embed", body, Authorization="Bearer sesame", Host="evil.example").status == 421
    assert fleet.ask("POST", "/embed", {"inputs": ["a"] * 201}, Authorization="Bearer sesame").status == 413
    assert fleet.ask("POST", "/embed", b"[" * 100_000, Authorization="Bearer sesame").status == 422
    assert fleet.ask("POST", "/answer", {"question": "a", "context": "b"}, Authorization="Bearer sesame").status == 424
    assert [fleet.ask("GET", path).status for path in ("/ping", "/health", "/")] == [200, 200, 200]


def test_a_killed_replica_comes_back(fleet: Running) -> None:
    def replicas() -> set[int]:
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if b"ServeReplica:albert" in (process / "cmdline").read_bytes():
                    found.add(int(process.name))
            except OSError:
                continue
        return found

    before = replicas()
    assert len(before) == 2
    dead = before.pop()
    os.kill(dead, signal.SIGKILL)
    end = time.monotonic() + 300
    while len(replicas() - {dead}) < 2:
        assert time.monotonic() < end, "no replica came back"
        time.sleep(0.2)
    while fleet.ask("POST", "/embed", {"inputs": "a ship"}, Authorization="Bearer sesame").status != 200:
        assert time.monotonic() < end, "it does not answer"
        time.sleep(0.2)


def test_settings_are_those_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from albert.serve.ray_app import settings_of

    told = settings_of({"models": "tiny-en a=runs/a", "hosts": "x y", "timeout": "5", "exact": True})
    assert (dict(told.models), told.hosts, told.timeout, told.exact) == (
        {"tiny-en": "tiny-en", "a": "runs/a"}, ("x", "y"), 5.0, True,
    )  # fmt: skip
    assert told.api_keys == ()
    monkeypatch.setenv("ALBERT_API_KEY", "sesame")
    assert settings_of({"models": "tiny-en"}).api_keys == ("sesame",)
    with pytest.raises(UsageError, match="did you mean 'max_inputs'"):
        settings_of({"models": "tiny-en", "max_inptus": 3})
    with pytest.raises(UsageError, match="port: Ray Serve decides that"):
        settings_of({"models": "tiny-en", "port": 80})


def test_the_example_is_what_ray_takes() -> None:
    pytest.importorskip("ray")
    import yaml
    from ray.serve.schema import ServeDeploySchema

    from albert.serve.ray_app import FLEET, settings_of

    told = ServeDeploySchema.model_validate(yaml.safe_load((ROOT / "deploy" / "ray.yaml").read_text()))
    (application,) = told.applications
    assert application.import_path == "albert.serve.ray_app:app"
    assert settings_of(application.args).models
    assert [one.name for one in application.deployments] == [FLEET.name]
