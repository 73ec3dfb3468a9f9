"""docs/new_task.md does what it says: its files, its diffs, its commands and its Python, in a copy of the code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "new_task.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
NEW_FILE = re.compile(r"# (src/\S+\.py)\n")
MOST_EDITS = 4
RUN = """
import sys
from albert.cli import main

def run(words):
    sys.argv = words
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, f"{words}: exit code {ended.code}"
"""  # all commands in one process: torch is loaded once


def apply(diff: str, root: Path) -> str:
    """Apply a diff without line numbers; what it replaces stands in the file once. Give the file's name."""
    head, *lines = diff.splitlines()
    name = head.removeprefix("--- ")
    text = (root / name).read_text(encoding="utf-8")
    old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in marks) for marks in (" -", " +"))
    assert text.count(old) == 1, f"{PAGE.name}: not to be found once in {name}:\n{old}"
    (root / name).write_text(text.replace(old, new), encoding="utf-8")
    return name


def test_the_page_adds_a_task_that_trains_predicts_and_reports(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "README.md", tmp_path)
    edited = {apply(text, tmp_path) for language, text in BLOCKS if language == "diff"}
    assert len(edited) <= MOST_EDITS

    script = [RUN]
    for language, text in BLOCKS:
        if language == "bash":
            script += [f"run({shlex.split(line)!r})" for line in text.splitlines()]
        elif new := NEW_FILE.match(text):
            (tmp_path / new[1]).write_text(text[new.end() :], encoding="utf-8")
        elif language == "python":
            script.append(text)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-c", "\n".join(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert (tmp_path / "grades.jsonl").exists()


def test_no_file_outside_of_tasks_and_labelled_asks_for_the_kind_of_a_task() -> None:
    kinds = r"(classification|multi-label|regression|choice|tagging)"
    asks = re.compile(rf"""kind (==|!=|in|not in) .*["']{kinds}["']|case ["']{kinds}["']""")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path.parent.name not in ("tasks", "labelled")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asks.search(line)
    ]
    assert not found, f"a task says it by itself (docs/new_task.md): {', '.join(found)}"
