"""The Dockerfile and the Kubernetes example agree with the command: users, ports, probes, options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def deployment() -> dict[str, Any]:
    """Return the Deployment of the example."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make setup")
    documents = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")))
    assert [one["kind"] for one in documents] == ["Deployment", "Service"]
    assert documents[1]["spec"]["selector"] == documents[0]["spec"]["selector"]["matchLabels"]
    found: dict[str, Any] = documents[0]
    return found


def test_the_pod_is_no_root_and_writes_nothing(deployment: dict[str, Any]) -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"USER {pod['securityContext']['runAsUser']}\n" in dockerfile
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert f"EXPOSE {container['ports'][0]['containerPort']}\n" in dockerfile
    assert deployment["spec"]["template"]["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]


def test_probes_and_options_exist(deployment: dict[str, Any]) -> None:
    import typer

    from albert.cli import app

    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    probes = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"startupProbe": "/ping", "livenessProbe": "/ping", "readinessProbe": "/health"}
    command: Any = typer.main.get_command(app)
    known = {option for parameter in command.commands["serve"].params for option in parameter.opts}
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    entry = re.search(r"^ENTRYPOINT \[(.*)\]", dockerfile, re.MULTILINE)
    assert entry
    words = [*container["args"], *re.findall(r'"([^"]+)"', entry[1])]
    assert {word for word in words if word.startswith("--")} <= known


def test_the_example_is_what_kubernetes_takes() -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="not installed: pip install kubernetes-validate"
    ).validate
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make setup")
    documents = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")))
    for document in documents:
        validate(document, "1.30", strict=True)  # its own JSON schema; strict: no field that it does not know
    documents[0]["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(Exception, match="readynessProbe"):
        validate(documents[0], "1.30", strict=True)
