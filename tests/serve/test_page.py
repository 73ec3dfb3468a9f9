"""The page: its files and headers here; in a real browser every task, by mouse and keyboard (make test-browser)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np
import pytest

import albert
from browser import Browser, browsing, find_chromium
from servers import Running, Start

FILES = ("page.css", "page.js", "dom.js", "depth.js", "server.js", "verbs.js", "docs.js")
SHOWN = "document.querySelector('#result').children.length > 0"
TURNED = "!document.querySelector('#depth').hidden"


def test_the_page_answers_probes_and_allows_nothing_from_elsewhere(server: Running) -> None:
    for path in ("/", "/docs"):
        page = server.ask("GET", path)
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert server.ask("HEAD", path).status == 200
        assert set(re.findall(rb'(?:src|href)="([^"]+)"', page.body)) <= {
            b"/", b"/docs", b"/openapi.json", b"data:,", b"/page/page.css", b"/page/page.js", b"/page/docs.js",
        }  # fmt: skip
        assert not re.search(rb"<script>|style=| on\w+=", page.body)
    for name in FILES:
        file = server.ask("GET", f"/page/{name}")
        assert file.status == 200
        assert file.headers["content-type"].startswith("text/css" if name.endswith("css") else "text/javascript")
        assert b"innerHTML" not in file.body
        assert b"://" not in file.body.replace(b"http://www.w3.org/2000/svg", b"")


def test_every_route_is_described(server: Running) -> None:
    paths = server.ask("GET", "/openapi.json").body["paths"]
    assert {"/embed", "/predict", "/v1/embeddings", "/answer", "/depth", "/health"} <= set(paths)


def test_the_last_depth_says_what_the_model_says(server: Running, folders: dict[str, str]) -> None:
    text = "The old harbour was quiet."
    truth = albert.load(folders["film"]).classify(text)
    chart = server.post("/depth", verb="predict", request={"inputs": text})
    assert chart["decisions"][-1] == truth.label
    assert len(chart["decisions"]) == 3
    for series in chart["series"]:
        assert series["values"][-1] == pytest.approx(truth.probabilities[series["name"]], abs=1e-5)
    chart = server.post("/models/score/depth", verb="predict", request={"inputs": [text, "A ship."]})
    value = albert.load(folders["score"]).classify(text, "A ship.").value
    assert chart["series"][0]["values"][-1] == pytest.approx(value, abs=1e-5)
    others = ["A ship.", "What a dog!"]
    chart = server.post("/depth", verb="similarity", request={"inputs": {"source_sentence": text, "sentences": others}})
    cosines = dict(zip(others, albert.load(folders["plain"]).similarity(text, others), strict=True))
    assert all(np.isclose(one["values"][-1], cosines[one["name"]], atol=1e-5) for one in chart["series"])
    for verb, request in (
        ("answer", {"question": "Who came?", "context": text}),
        ("choose", {"question": "Who came?", "choices": ["a man", "a dog"], "context": text}),
        ("tag", {"inputs": text}),
        ("fill", {"inputs": "the [MASK] ship"}),
    ):
        said, chart = server.post(f"/{verb}", **request), server.post("/depth", verb=verb, request=request)
        shown = json.dumps([said.get("answer"), said.get("blanks"), said.get("words")])
        assert len(chart["decisions"]) == 3
        assert verb == "tag" or chart["decisions"][-1].split(": ")[-1] in shown
    assert server.refusal("/depth", verb="predict", request={"inputs": [["a"], ["b"]]}) == (422, "Validation")
    assert server.refusal("/depth", verb="predict", request={"inputs": []}) == (422, "Validation")
    assert server.refusal("/depth", verb="tag", request={"inputs": ["a", "b"]}) == (422, "Validation")
    assert server.refusal("/depth", verb="tag", request={}) == (422, "Validation")
    assert server.refusal("/depth", verb="fill", request={"inputs": "a [MASK]" * 9}) == (413, "Validation")
    assert server.refusal("/models/plain/depth", verb="tag", request={"inputs": "a"}) == (424, "Backend")


def test_the_dial_turns_whatever_engine_runs_the_model(start: Start) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed: make setup")
    server = start("film", engine="onnx")
    assert server.service.models.served["film"].predictor.engine.name == "onnx"
    (best, *_) = server.post("/predict", inputs="a ship")
    chart = server.post("/depth", verb="predict", request={"inputs": "a ship"})
    assert chart["decisions"][-1] == best["label"]
    assert chart["series"][0]["values"][-1] == pytest.approx(best["score"], abs=1e-4)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start Chromium, or skip."""
    program = find_chromium()
    if program is None:
        pytest.skip("Chromium is missing (Debian: apt install chromium)")
    with browsing(program, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def choose(page: Browser, model: str, verb: str) -> None:
    page.click(f'#models [data-name="{model}"]')
    page.click(f'#verbs [data-name="{verb}"]')


@pytest.mark.browser
def test_every_task_on_the_page(page: Browser, server: Running) -> None:
    page.resize(900, 900)
    page.open(server.url)
    page.wait("document.querySelectorAll('#models button').length === 8")
    for model, verb, seen in (
        ("film", "predict", ".bars .fill"),
        ("score", "predict", ".value"),
        ("topics", "predict", ".bars .fill"),
        ("reader", "answer", "mark"),
        ("exam", "choose", ".bars .best"),
        ("names", "tag", ".passage"),
        ("plain", "fill", ".blank"),
        ("alike", "similarity", "table td"),
        ("alike", "search", "ol.found li"),
    ):
        choose(page, model, verb)
        page.click("#ask button[type=submit]")
        page.wait(SHOWN)
        assert page.run(f"document.querySelectorAll('#result {seen}').length") > 0, (model, verb)
        assert "in the model" in page.wait("document.querySelector('#timing').textContent")
        if verb != "similarity":
            page.wait(TURNED)
            page.run("dial.value = 1; dial.dispatchEvent(new Event('input'))")
            assert page.run("document.querySelector('#depth output').textContent").startswith("After pass 1 of 3")
            assert page.run("document.querySelectorAll('#depth > svg polyline').length") > 0
    assert page.complaints() == []
    assert {url for url in page.addresses() if not url.startswith((server.url, "data:"))} == set()


@pytest.mark.browser
def test_what_is_typed_stays_text_and_what_is_wrong_is_said(page: Browser, server: Running) -> None:
    page.open(server.url)
    choose(page, "names", "tag")
    evil = "<img src=x onerror=window.broken=1> & <b>bold</b> 🙂 Peter"
    page.run(f"document.querySelector('#field-inputs').value = {json.dumps(evil)}")
    page.click("#ask button[type=submit]")
    page.wait(SHOWN)
    text = page.run(
        "[...document.querySelector('#result .passage').childNodes]"
        ".map((one) => one.firstChild ? one.firstChild.textContent : one.textContent).join('')"
    )
    assert text == evil
    assert page.run("document.querySelectorAll('#result img, #result b').length + (window.broken ?? 0)") == 0
    choose(page, "plain", "fill")
    page.run("document.querySelector('#field-inputs').value = 'nothing is missing'")
    before = len(page.complaints())
    page.click("#ask button[type=submit]")
    assert "[MASK]" in page.wait("document.querySelector('#problem').textContent")
    assert all("422" in one for one in page.complaints()[before:])


@pytest.mark.browser
def test_the_keyboard_is_enough(page: Browser, server: Running) -> None:
    page.open(server.url)
    page.wait("document.querySelectorAll('#models button').length === 8")
    page.run("document.querySelector('#models button').focus()")
    page.press("ArrowRight", code=39)
    assert page.run("document.activeElement.dataset.name") == "film"
    assert page.run("document.querySelector('#models [aria-selected=true]').dataset.name") == "film"
    page.run("document.querySelector('#field-text').focus()")
    page.press("Enter", code=13, control=True)
    page.wait(SHOWN)


@pytest.mark.browser
def test_a_phone_and_the_dark_are_served(page: Browser, server: Running) -> None:
    page.resize(390, 844, phone=True, dark=True)
    page.open(server.url)
    choose(page, "reader", "answer")
    page.click("#ask button[type=submit]")
    page.wait(TURNED)
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
    ground = page.run("getComputedStyle(document.documentElement).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", ground))) < 150
    page.resize(900, 900)
    page.open(server.url)
    page.wait("document.querySelector('#ask textarea') !== null")
    ground = page.run("getComputedStyle(document.documentElement).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", ground))) > 600


@pytest.mark.browser
def test_the_page_asks_for_the_key_and_uses_it(page: Browser, start: Start) -> None:
    server = start("plain", api_keys=("sesame",))
    page.open(server.url)
    page.wait("!document.querySelector('#key').hidden")
    page.run("document.querySelector('#key-field').value = 'sesame'")
    page.click("#key button")
    page.wait("document.querySelector('#ask textarea') !== null")
    page.click("#ask button[type=submit]")
    page.wait(SHOWN)
    page.open(f"{server.url}/docs")
    page.wait("document.querySelectorAll('details').length > 10")
