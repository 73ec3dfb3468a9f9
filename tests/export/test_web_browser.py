"""The web export in headless Chromium, the network cut: the page says what Python says (make test-browser)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import albert
from albert.errors import UsageError
from albert.export import web
from albert.export.exported_engine import open_onnx
from albert.export.web import export_web
from albert.export.web_runtime import read_runtime
from albert.inference.model import Model
from albert.inference.predictor import Predictor
from albert.tasks.classification import Classification, Regression
from albert.tasks.similarity import Similarity
from albert.tasks.tagging import Tagging
from browser import Browser, browsing, find_chromium

pytestmark = pytest.mark.browser
NAMES = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
SHOWN = "document.querySelector('#result').children.length > 0"
TEXT, OTHER = "The old harbour was quiet, <b>Peter Smith</b> 🙂.", "A small grey ship: ``déjà'' 1,234!"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def files_at(folder: Path) -> Iterator[str]:
    """Give out a folder, as `python -m http.server` does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start Chromium, which finds no host by name, or skip."""
    program = find_chromium()
    if program is None:
        pytest.skip("Chromium is missing (Debian: apt install chromium)")
    with browsing(program, tmp_path_factory.mktemp("profile"), NAMES) as browser:
        browser.resize(900, 900)
        yield browser


@pytest.fixture(scope="module")
def runtime() -> dict[str, bytes]:
    """Let npm fetch onnxruntime-web, or skip."""
    try:
        return read_runtime(None)
    except UsageError as problem:
        pytest.skip(str(problem))


def offline(page: Browser, *, on: bool) -> None:
    page.send("Network.emulateNetworkConditions", offline=on, latency=0, downloadThroughput=-1, uploadThroughput=-1)


def asked(page: Browser, route: str, **body: Any) -> Any:
    """Ask as the page does, and return the numbers themselves."""
    request = f"call('/models/any/{route}', {json.dumps(body)})"
    return page.run(f"import('/server.js').then(({{ call }}) => {request}).then(({{ value }}) => value)")


CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "classes": (("classifier",), {"task": Classification(("bad", "fair", "good"), max_length=64)}, ".bars .fill"),
    "value": (("classifier",), {"task": Regression(max_length=64, centre=2.5), "columns": {"pair": "b"}}, ".value"),
    "tags": (("tags",), {"task": Tagging(("O", "B-PER", "I-PER"), max_length=64)}, ".passage"),
    "blanks": (("mlm", "order"), {}, ".blank"),
    "vectors": ((), {"task": Similarity(max_length=64)}, "table td"),
}


@pytest.mark.parametrize("fp32", [True, False], ids=["fp32", "int8"])
@pytest.mark.parametrize("case", CASES)
def test_the_page_says_what_python_says_without_a_network(
    case: str,
    fp32: bool,
    page: Browser,
    runtime: dict[str, bytes],
    make_source: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads, settings, seen = CASES[case]
    source = make_source(*heads, **settings)
    monkeypatch.setattr(web, "read_runtime", lambda folder: dict(runtime))
    out = tmp_path / "out"
    export_web(source, out, fp32=fp32)
    model: Model = albert.load(source.folder, engine="torch")
    if not fp32:  # the same file, in ONNX Runtime
        engine = open_onnx(out / "onnx/model_quantized.onnx", source.model.config, list(source.model.heads))
        model.predictor = Predictor(engine, source.tokenizer)
    page.events.clear()
    with files_at(out) as url:
        page.open(url)
        page.wait("document.querySelector('#ask button') !== null")
        offline(page, on=True)
        page.click("#ask button[type=submit]")
        page.wait(SHOWN)
        assert page.run(f"document.querySelectorAll('#result {seen}').length") > 0
        assert "tokens" in page.run("document.querySelector('#timing').textContent")
        _compare(page, model, case, near=1e-4 if fp32 else 2e-2)
        offline(page, on=False)
        assert page.complaints() == []
        assert {address for address in page.addresses() if not address.startswith((url, "data:"))} == set()


def _compare(page: Browser, model: Model, case: str, *, near: float) -> None:
    match case:
        case "classes":
            said = {row["label"]: row["score"] for row in asked(page, "predict", inputs=TEXT)}
            assert said == pytest.approx(model.classify(TEXT).probabilities, abs=near)
        case "value":
            (said,) = asked(page, "predict", inputs=[TEXT, OTHER])
            assert said["score"] == pytest.approx(model.classify(TEXT, OTHER, kind="regression").value, abs=near)
        case "tags":
            said, words = asked(page, "tag", inputs=TEXT)["words"], model.tag(TEXT).words
            assert [word["probability"] for word in said] == pytest.approx([w.probability for w in words], abs=near)
            assert [(word["start"], word["end"]) for word in said] == [(word.start, word.end) for word in words]
        case "blanks":
            text = f"{TEXT} [MASK] {OTHER}"
            (said,), (blank,) = asked(page, "fill", inputs=text, top=5)["blanks"], model.fill(text, top=5)
            probabilities = [guess.probability for guess in blank.guesses]
            assert [guess["probability"] for guess in said["guesses"]] == pytest.approx(probabilities, abs=near)
            assert (said["start"], said["end"]) == (blank.start, blank.end)
        case "vectors":
            vectors = model.embed([TEXT, OTHER], normalize=True)
            np.testing.assert_allclose(asked(page, "embed", inputs=[TEXT, OTHER]), vectors, atol=near)


def test_what_is_typed_stays_text_and_what_is_missing_is_said(
    page: Browser, runtime: dict[str, bytes], make_source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "read_runtime", lambda folder: dict(runtime))
    export_web(make_source("tags"), tmp_path / "out", fp32=True)
    with files_at(tmp_path / "out") as url:
        page.open(url)
        page.wait("document.querySelector('#ask button') !== null")
        evil = "<img src=x onerror=window.broken=1> & <b>bold</b> 🙂 Peter"
        page.run(f"document.querySelector('#field-inputs').value = {json.dumps(evil)}")
        page.click("#ask button[type=submit]")
        page.wait(SHOWN)
        assert page.run("document.querySelectorAll('#result img, #result b').length + (window.broken ?? 0)") == 0
        page.run("document.querySelector('#field-inputs').value = '  '")
        page.click("#ask button[type=submit]")
        assert "no words" in page.wait("document.querySelector('#problem').textContent")
        page.run("document.querySelector('#field-inputs').value = 'a '.repeat(500000)")
        page.click("#ask button[type=submit]")
        assert "more than 100,000" in page.wait("document.querySelector('#problem').textContent")
        (tmp_path / "out" / "vocabulary.json").unlink()
        page.open(f"{url}?again")
        assert "vocabulary.json: status 404" in page.wait("document.querySelector('#problem').textContent")
