"""Export to a web page: a folder for any file server, with a page in which the browser runs the model.

The page is that of `albert serve` with another `server.js`, which asks the model in the folder: ONNX, run by
onnxruntime-web (web_runtime.py), with a tokenizer in JavaScript that gives our ids. The model is checked against torch
as every export is, the tokenizer against ours where Node.js is there to run it.
"""

from __future__ import annotations

import importlib.resources
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from albert.errors import ModelError, UsageError
from albert.export.check import real_texts
from albert.export.files import FP32_FILE, INT8_FILE, Exported, export_files, refuse_missing
from albert.export.source import Source
from albert.export.web_runtime import read_runtime
from albert.files import atomic_folder
from albert.inference.fill import Fill
from albert.inference.model import LONGEST
from albert.model.folder import load_model
from albert.tasks.classification import Classification, MultiLabel, Regression
from albert.tasks.similarity import Similarity
from albert.tasks.tagging import Tagging
from albert.tokenizer import Tokenizer
from albert.tokenizer.browser import browser_vocabulary
from albert.tokenizer.words import word_starts

SHARED = ("page.css", "page.js", "dom.js", "verbs.js", "depth.js")  # with the page of `albert serve`
VECTORS_FILE = "modules.json"  # by which sentence-transformers knows a model of vectors
AWKWARD = (
    "",
    " \t ",
    "Ça, c'est ``déjà'' 1,234½ ﬁn…",
    "日本語のテキスト 🙂👩‍👩‍👧",
    "\ud800 ΣΑΣ \x00\u200b\ufeff <pad>[MASK]",
    "x" * 300,
)
SCRIPT = """
import { readFileSync } from 'node:fs';
const [module, vocabulary] = process.argv.slice(-2).map((path) => readFileSync(path, 'utf8'));
const { Tokenizer } = await import('data:text/javascript,' + encodeURIComponent(module));
const tokenizer = new Tokenizer(JSON.parse(vocabulary));
console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map((text) => tokenizer.encode(text))));
"""


@dataclass(frozen=True)
class WebExported(Exported):
    """What was written, and on how many texts the tokenizer in JavaScript gave our ids; None: Node.js is missing."""

    tokenizer_texts: int | None = None


def export_web(
    source: Source,
    out: Path,
    *,
    fp32: bool = False,
    runtime: Path | None = None,
    calibrate: Path | None = None,
    dev: Path | None = None,
    allowed_loss: float = 1.0,
    observe: Callable[[float, str], None] = lambda *_: None,
) -> WebExported:
    """Write the folder of a page with a model in it."""
    refuse_missing("onnx")
    if fp32 and (calibrate or dev):
        raise UsageError("--calibrate and --dev are for the int8 model: leave them out, or leave --fp32 out")
    about = describe(source)
    vocabulary = browser_vocabulary(source.tokenizer)
    observe(0.02, "fetching onnxruntime-web")
    files = read_runtime(runtime)
    if about["abilities"] == ["similarity"] and source.model.heads:  # only without heads does a graph give the states
        source = replace(source, model=load_model(source.folder, []).model)
    with atomic_folder(out) as folder:
        built, file = folder / "built", (FP32_FILE if fp32 else INT8_FILE)["onnx"]
        exported = export_files(
            source, built, form="onnx", int8=not fp32, calibrate=calibrate, dev=dev, allowed_loss=allowed_loss,
            observe=observe,
        )  # fmt: skip
        files[file] = (built / file).read_bytes()
        shutil.rmtree(built)
        files |= _page_files()
        files["model.json"] = _json(about | {"file": file})
        files["vocabulary.json"] = _json(vocabulary)
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        observe(0.95, "checking the tokenizer in JavaScript")
        texts = check_tokenizer(folder, source.tokenizer, [*real_texts(calibrate), *AWKWARD])
    sizes = {name: len(content) for name, content in sorted(files.items())}
    return WebExported(out, sizes, exported.texts, exported.difference, exported.int8, texts)


def describe(source: Source) -> dict[str, Any]:
    """Return the contents of model.json: what `albert serve` says of a model, and what its decisions depend on."""
    config, remembered = source.model.config, source.remembered
    task = remembered.task if remembered is not None else None
    longest = min(LONGEST, config.max_position_embeddings)
    own: dict[str, Any]
    match task:
        case Classification() | MultiLabel() | Regression():
            own = {"abilities": ["predict"], "labels": config.labels, "long": task.long}
            own |= {"scale": task.scale, "centre": task.centre} if isinstance(task, Regression) else {}
            own |= {"threshold": task.threshold} if isinstance(task, MultiLabel) else {}
        case Tagging():
            own = {"abilities": ["tag"], "labels": config.labels, "capitals": task.capitals}
        case Similarity():
            own = {"abilities": ["similarity"], "cut": True}
        case None if (source.folder / VECTORS_FILE).exists() or not source.model.heads:
            own = {"abilities": ["similarity"], "cut": False}
        case None if "mlm" in source.model.heads:
            own = {"abilities": ["fill"], "offered": _offered(source.tokenizer, longest)}
        case _:
            what = f"a {task.kind} model" if task is not None else f"a model with {', '.join(source.model.heads)}"
            raise UsageError(
                f"{source.name}: is {what}, and the page has classification, tags, blanks and similarity: use "
                "`albert serve`, or export onnx"
            )
    return {
        "model_id": Path(source.name).resolve().name,
        "task": task.kind if task is not None else None,
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "max_input_length": task.max_length if task is not None else longest,
        "pairs": remembered is not None and "pair" in remembered.columns,
        **own,
    }


def _offered(tokenizer: Tokenizer, longest: int) -> str:
    """Say of each piece whether it is offered for a blank: `-` never, `w` as a word, `c` as a word's continuation."""
    special = frozenset((tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id))
    offered = set(Fill(tokenizer.pieces, longest, special=special).offered.tolist())
    starts = word_starts(tokenizer.pieces)
    return "".join("-" if i not in offered else "w" if starts[i] else "c" for i in range(tokenizer.vocab_size))


def check_tokenizer(folder: Path, tokenizer: Tokenizer, texts: Sequence[str]) -> int | None:
    """Compare the ids of the tokenizer in JavaScript with ours; return on how many texts, None without Node.js."""
    node = shutil.which("node")
    if node is None:
        return None
    paths = [str(folder / name) for name in ("tokenizer.js", "vocabulary.json")]
    command = [node, "--input-type=module", "--eval", SCRIPT, *paths]
    done = subprocess.run(command, input=json.dumps(texts).encode(), capture_output=True, check=False)
    if done.returncode:
        raise ModelError(f"the tokenizer in JavaScript fails in {node}: {done.stderr.decode(errors='replace')[-500:]}")
    for text, ids in zip(texts, json.loads(done.stdout), strict=True):
        if ids != tokenizer.encode(text):
            raise ModelError(
                f"the tokenizer in JavaScript gives other ids than ours for {text[:100]!r}: nothing was written; this "
                "is a defect, please report it"
            )
    return len(texts)


def _page_files() -> dict[str, bytes]:
    package = importlib.resources.files("albert")
    own = {path.name: path.read_bytes() for path in (package / "export" / "web_files").iterdir()}
    return own | {name: (package / "serve" / "page_files" / name).read_bytes() for name in SHARED}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
