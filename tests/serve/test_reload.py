"""A changed model folder is taken up without a dropped request; a broken one is refused and the old one goes on."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from albert.files import read_json
from albert.model.folder import load_model, save_model
from albert.tasks.saved_task import TASK_FILE
from albert.tokenizer import Tokenizer
from servers import serving


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_a_changed_folder_is_taken_up_and_a_broken_one_refused(
    folders: dict[str, str], tmp_path: Path, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["film"], folder)
    with serving({"film": str(folder)}, reload=True, reload_seconds=0.1) as server:
        done, statuses = threading.Event(), []

        def ask() -> None:
            while not done.is_set():
                statuses.append(server.ask("POST", "/predict", {"inputs": "the old harbour"}).status)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            before, first = (
                server.service.models.served["film"],
                server.post("/predict", inputs="a ship", raw_scores=True),
            )
            model = load_model(folder).model
            model.heads["classifier"].linear.bias.data += 1  # type: ignore[union-attr, operator]
            model.heads["classifier"].linear.weight.data *= 2  # type: ignore[union-attr, operator]
            save_model(model, folder, tokenizer=tokenizer, extra={TASK_FILE: read_json(folder / TASK_FILE)})
            until(lambda: server.service.models.served["film"] is not before)
            after = server.service.models.served["film"]
            second = server.post("/predict", inputs="a ship", raw_scores=True)
            assert abs(second[0]["score"] - first[0]["score"]) > 0.1
            with caplog.at_level("ERROR", "albert.serve.reload"):
                (folder / "config.json").write_text("{broken")
                until(lambda: "reload refused" in caplog.messages)
            assert server.service.models.served["film"] is after
            third = server.post("/predict", inputs="a ship", raw_scores=True)
            assert third[0]["score"] == pytest.approx(second[0]["score"], abs=1e-5)
            assert server.ask("GET", "/health").status == 200
        finally:
            done.set()
            asking.join()
    assert len(statuses) > 3
    assert set(statuses) == {200}
