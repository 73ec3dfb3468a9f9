"""The web export: our ids and our decisions in JavaScript, a pinned runtime, and the page in a real browser."""

from __future__ import annotations

import io
import json
import lzma
import random
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

from albert.batch import Batch, Said, Wanted
from albert.errors import ModelError, UsageError
from albert.export import web, web_runtime
from albert.export.check import real_texts
from albert.export.source import Source
from albert.export.web import check_tokenizer, describe, export_web
from albert.inference.embed import Embed
from albert.inference.fill import Fill, PlainText
from albert.inference.predictor import Predictor
from albert.tasks.classification import Classification, MultiLabel, Regression, TextExample
from albert.tasks.similarity import Similarity
from albert.tasks.tagging import Tagging, split_words
from albert.tokenizer import Tokenizer
from albert.tokenizer.browser import browser_vocabulary
from albert.tokenizer.normalisation import Normalisation

WEB_FILES = Path(web.__file__).parent / "web_files"
MODELS = Path(web.__file__).parents[1] / "models"
KINDS = (
    range(0x20, 0x7F), range(0x250), range(0x300, 0x370), range(0x370, 0x530), range(0x590, 0x700),
    range(0x900, 0xE80), range(0x1E00, 0x2000), range(0x2000, 0x2300), range(0x3000, 0x3100), range(0x4E00, 0x5000),
    range(0xAC00, 0xAD00), range(0xD800, 0xDC00), range(0xFB00, 0xFFFF), range(0x1D400, 0x1D800),
    range(0x1F300, 0x1F700), (0, 9, 10, 11, 0x1C, 0x85, 0xA0, 0x200B, 0x200D, 0x2028, 0x2581, 0xFE0F, 0xFEFF, 0xFFFD),
    tuple(map(ord, "'`\"0123456789,.()-[]<> ")),
)  # fmt: skip


@pytest.fixture
def node() -> str:
    """Return the path of Node.js, or skip."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node.js is missing (Debian: apt install nodejs)")
    return program


def need_onnx() -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="export web: pip install 'albert-lite[onnx]'")


def invented(count: int) -> list[str]:
    """Return texts of characters of every kind, several kinds in each."""
    rng = random.Random(7)
    texts = [
        "",
        " ",
        "''``''",
        "\x00",
        "\ud83d",
        "a" * 3000,
        "ab\ud83d\U0001f642 \udc00",
        "28, 11,419, 1,2,3,",
        "<pad>[MASK]<unk>",
    ]
    while len(texts) < count:
        kinds = rng.sample(KINDS, rng.randint(1, 4))
        letters = [chr(rng.choice(rng.choice(kinds))) for _ in range(rng.randint(1, 40))]
        texts.append("".join(letter for letter in letters if unicodedata.category(letter) != "Cn"))
    return texts


def bundled(folder: Path, tokenizer: Tokenizer) -> Path:
    """Write the tokenizer's two files of a bundle."""
    folder.mkdir()
    shutil.copyfile(WEB_FILES / "tokenizer.js", folder / "tokenizer.js")
    (folder / "vocabulary.json").write_text(json.dumps(browser_vocabulary(tokenizer)))
    return folder


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    "normalisation", [Normalisation(), Normalisation(lower_case=False, keep_accents=True)], ids=str
)
def test_the_tokenizer_in_javascript_gives_our_ids(normalisation: Normalisation, tmp_path: Path) -> None:
    tokenizer = Tokenizer(Tokenizer.load(MODELS / "tiny-en").model, normalisation)
    texts = [*real_texts(None), *invented(2500)]
    assert check_tokenizer(bundled(tmp_path / "bundle", tokenizer), tokenizer, texts) == len(texts)


@pytest.mark.usefixtures("node")
def test_the_official_vocabulary_gives_our_ids_on_real_texts(real_data: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(real_data / "vocab" / "spiece.model")
    with lzma.open(real_data / "corpus" / "wiki.valid.txt.xz", "rt", encoding="utf-8") as file:
        texts = [line for line in islice(file, 4000) if line.strip()]
    assert len(texts) > 1500
    texts = texts[:1500] + invented(1000)
    assert check_tokenizer(bundled(tmp_path / "bundle", tokenizer), tokenizer, texts) == len(texts)


@pytest.mark.usefixtures("node")
def test_other_ids_are_refused_and_without_node_nothing_is_checked(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bundled(tmp_path / "bundle", tokenizer)
    vocabulary = json.loads((folder / "vocabulary.json").read_text())
    (folder / "vocabulary.json").write_text(json.dumps(vocabulary | {"lower_case": False}))
    with pytest.raises(ModelError, match="other ids than ours for 'The ship'"):
        check_tokenizer(folder, tokenizer, ["a ship", "The ship"])
    (folder / "tokenizer.js").write_text("export class Other {}")
    with pytest.raises(ModelError, match="fails in"):
        check_tokenizer(folder, tokenizer, ["a ship"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert check_tokenizer(folder, tokenizer, ["a ship"]) is None


class Formula:
    """An engine whose outputs are a formula of ids, places and segments: that of web_cases.mjs."""

    name = "formula"

    def __init__(self, source: Source, width: int) -> None:
        self.config, self.heads, self.width = source.model.config, ("classifier", "tags", "mlm"), width

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        said, start = [], 0
        for text, length in enumerate(batch.lengths.tolist()):
            ids, segments = (x[start : start + length].astype(float) for x in (batch.token_ids, batch.segment_ids))
            start += length
            places, k = np.arange(length)[:, None], np.arange(self.width)
            every = np.sin(0.37 * ids[:, None] + 0.11 * places + 1.3 * k + 0.5 * segments[:, None]).astype(np.float32)
            ((head, where),) = wanted.items()
            if where == "class":
                said.append({head: (every.sum(0),)})
            else:
                said.append({head: (every if isinstance(where, str) else every[list(where[text])],)})
        return said


def javascript(
    node: str, source: Source, tmp_path: Path, *, route: str, width: int, requests: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return what answers.js says to some requests."""
    folder = shutil.copytree(WEB_FILES, tmp_path / "bundle", dirs_exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}')
    given = {
        "about": describe(source), "vocabulary": browser_vocabulary(source.tokenizer), "width": width, "route": route,
        "requests": requests,
    }  # fmt: skip
    command = [node, str(Path(__file__).with_name("web_cases.mjs")), str(folder)]
    done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


SHORT = "The old harbour was quiet."
LONG = "Nobody had seen such a winter in forty years; the town was running out of coal, and of bread. 🙂 " * 12
TEXTS = (SHORT, "Peter Smith, New\u00a0York: e\u0301t\u00e9 \U0001d400!", LONG)


@pytest.mark.parametrize(
    "task",
    [
        Classification(("bad", "fair", "good"), max_length=64),
        Classification(("bad", "fair", "good"), max_length=64, long="mean"),
        MultiLabel(("bad", "fair", "good"), max_length=64),
        Regression(max_length=64, centre=3.0, scale=2.0, long="mean"),
    ],
    ids=lambda task: f"{task.kind}-{task.long}",
)
def test_classes_in_javascript_are_those_of_python(task: Any, make_source: Any, node: str, tmp_path: Path) -> None:
    source = make_source("classifier", task=task)
    width = len(source.model.config.labels)
    examples = [*map(TextExample, TEXTS), TextExample(LONG, SHORT), TextExample(SHORT, LONG), TextExample(LONG, LONG)]
    ours = Predictor(Formula(source, width), source.tokenizer).predict(task, examples)
    requests = [{"inputs": one.text if one.pair is None else [one.text, one.pair]} for one in examples]
    theirs = javascript(node, source, tmp_path, route="predict", width=width, requests=requests)
    for example, one, other in zip(examples, ours, theirs, strict=True):
        expected = {"value": one.value} if isinstance(task, Regression) else one.probabilities
        assert {row["label"]: row["score"] for row in other["value"]} == pytest.approx(expected, abs=1e-5)
        assert other["cut"] == (
            len(example.text + (example.pair or "")) > 300 and (task.long == "first" or example.pair is not None)
        )


@pytest.mark.parametrize("capitals", [False, True])
def test_tags_in_javascript_are_those_of_python(make_source: Any, node: str, tmp_path: Path, capitals: bool) -> None:
    task = Tagging(("O", "B-PER", "I-PER", "I-LOC", "S-LOC", "E-PER"), max_length=64, capitals=capitals)
    source = make_source("tags", task=task)
    ours = Predictor(Formula(source, 6), source.tokenizer).predict(task, map(split_words, TEXTS))
    theirs = javascript(node, source, tmp_path, route="tag", width=6, requests=[{"inputs": text} for text in TEXTS])
    for text, one, other in zip(TEXTS, ours, theirs, strict=True):
        record = json.loads(json.dumps(task.record(split_words(text), one)))
        for kind in ("words", "spans"):
            assert len(record[kind]) == len(other["value"][kind]) > 0
            for mine, found in zip(record[kind], other["value"][kind], strict=True):
                assert mine.pop("probability") == pytest.approx(found["probability"], abs=1e-5)
                assert mine == {name: found[name] for name in mine}


def test_blanks_in_javascript_are_those_of_python(make_source: Any, node: str, tmp_path: Path) -> None:
    source = make_source("mlm", "order")
    width = source.tokenizer.vocab_size
    texts = ["the [MASK] ship", f"🙂[MASK] {LONG} [MASK] {LONG}[MASK][MASK] end", "[MASK]"]
    task = Fill(source.tokenizer.pieces, 64, 4, frozenset(range(5)))
    ours = Predictor(Formula(source, width), source.tokenizer).predict(task, map(PlainText, texts))
    requests = [{"inputs": text, "top": 4} for text in texts]
    theirs = javascript(node, source, tmp_path, route="fill", width=width, requests=requests)
    for text, one, other in zip(texts, ours, theirs, strict=True):
        blanks = task.record(PlainText(text), one)["blanks"]
        assert [(b["start"], b["end"]) for b in blanks] == [(b["start"], b["end"]) for b in other["value"]["blanks"]]
        for mine, found in zip(blanks, other["value"]["blanks"], strict=True):
            for guess, theirs_ in zip(mine["guesses"], found["guesses"], strict=True):
                assert guess.pop("probability") == pytest.approx(theirs_.pop("probability"), abs=1e-6)
                assert guess == theirs_


@pytest.mark.parametrize("task", [None, Similarity(max_length=64)], ids=["plain", "tuned"])
def test_vectors_in_javascript_are_those_of_python(task: Any, make_source: Any, node: str, tmp_path: Path) -> None:
    source = make_source(task=task)
    width = source.model.config.hidden_size
    predictor = Predictor(Formula(source, width), source.tokenizer)
    ours = np.stack(list(predictor.predict(Embed(64, cut=task is not None), map(PlainText, TEXTS))))
    ours /= np.linalg.norm(ours, axis=1, keepdims=True)
    (theirs,) = javascript(node, source, tmp_path, route="embed", width=width, requests=[{"inputs": TEXTS}])
    np.testing.assert_allclose(theirs["value"], ours, atol=1e-5)
    assert theirs["cut"] == (task is not None)
    query = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}}
    (theirs,) = javascript(node, source, tmp_path, route="similarity", width=width, requests=[query])
    np.testing.assert_allclose(theirs["value"], ours[1:] @ ours[0], atol=1e-5)


@pytest.fixture
def fake_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put something in the place of onnxruntime-web."""
    found = {bundled: b"runtime" for bundled, _ in web_runtime.FILES.values()}
    monkeypatch.setattr(web, "read_runtime", lambda folder: dict(found))


@pytest.mark.usefixtures("fake_runtime")
@pytest.mark.parametrize("fp32", [False, True], ids=["int8", "fp32"])
def test_a_bundle_is_whole_and_fetches_nothing_from_elsewhere(fp32: bool, make_source: Any, tmp_path: Path) -> None:
    need_onnx()
    exported = export_web(make_source("classifier"), tmp_path / "out", fp32=fp32)
    out = tmp_path / "out"
    files = {str(path.relative_to(out)): path.stat().st_size for path in out.rglob("*") if path.is_file()}
    assert files == exported.files
    model = "onnx/model.onnx" if fp32 else "onnx/model_quantized.onnx"
    assert json.loads((out / "model.json").read_text())["file"] == model
    assert {model, "index.html", "vocabulary.json", "runtime/ort.js", "runtime/ort.wasm"} <= set(files)
    assert not {"config.json", "spiece.model", "model.safetensors"} & set(files)
    assert exported.tokenizer_texts is None or exported.tokenizer_texts > 60
    page = (out / "index.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r"<script>|style=| on\w+=|unsafe-inline|'unsafe-eval'", page)
    for name in files:
        if name.endswith((".js", ".html", ".css")):
            text = (out / name).read_text()
            assert "innerHTML" not in text
            assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
            for used in re.findall(r"""(?:from |src=|href=)['"](?!data:)(?:\./)?([^'"]+)['"]""", text):
                assert used in files, f"{name}: {used}"


def test_what_the_page_has_nothing_for_is_refused_before_anything_is_fetched(make_source: Any, tmp_path: Path) -> None:
    need_onnx()
    for head in ("span", "choice", "conditional_span"):
        with pytest.raises(UsageError, match="the page has classification, tags, blanks and similarity"):
            export_web(make_source(head), tmp_path / "out")
    with pytest.raises(UsageError, match="are for the int8 model"):
        export_web(make_source("tags"), tmp_path / "out", fp32=True, dev=tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_model_of_vectors_compares_and_one_of_words_fills_in(make_source: Any) -> None:
    source = make_source("mlm", "order")
    about = describe(source)
    assert about["abilities"] == ["fill"]
    kinds = dict(zip(source.tokenizer.pieces, about["offered"], strict=True))
    assert (kinds["[MASK]"], kinds["."], kinds["\u2581the"], kinds["s"]) == ("-", "-", "w", "c")
    assert not about["pairs"]
    assert describe(make_source("classifier", columns={"pair": "b"}))["pairs"]
    (source.folder / "modules.json").write_text("[]")
    assert describe(source)["abilities"] == ["similarity"]


def test_another_kind_of_vocabulary_is_refused() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the old harbour was quiet"] * 9), model_writer=model, vocab_size=40, model_type="bpe",
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]", minloglevel=2, num_threads=1,
        hard_vocab_limit=False,
    )  # fmt: skip
    with pytest.raises(UsageError, match="not unigram"):
        browser_vocabulary(Tokenizer(model.getvalue(), Normalisation()))
