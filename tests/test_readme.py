"""The pages are true: the README's tree is the disk, its Python runs, its commands, targets and links exist.

The tree is the ```text block under `## The code, in the order of the work`: two spaces of indentation a level, a name
(folders end in /), two or more spaces, a comment. It lists every folder and module of src/albert but `__init__.py`.
`python tests/test_readme.py` prints the block as it should be, keeping order and comments and adding what is new with
the first line of its docstring; `--write` puts it into README.md. A block after `<!-- not run: why -->` is not tried.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
HEADING = "## The code, in the order of the work"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: where its first line stands, its language, its text, whether it is to be tried."""

    line: int
    language: str
    text: str
    tried: bool
    heading: str


def blocks(page: Path) -> list[Block]:
    """List the fenced blocks of a page."""
    found = []
    heading, above, fence, start = "", "", "", 0
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if fence:
            if line.strip() == "```":
                text = "\n".join(lines[start:number])
                found.append(Block(start + 1, fence[3:].strip(), text, not above.startswith("<!-- not run:"), heading))
                fence, above = "", ""
        elif line.startswith("```"):
            fence, start = line, number + 1
        elif line.strip():
            above = line.strip()
            heading = line.strip() if line.startswith("#") else heading
    assert not fence, f"{page.name}:{start}: the block is not closed"
    return found


def tree_block() -> Block | None:
    return next((block for block in blocks(README) if block.heading == HEADING and block.language == "text"), None)


def parse_tree(text: str) -> dict[str, str]:
    """Read a tree into paths and comments, in order; folders end in a slash."""
    entries: dict[str, str] = {}
    trail: list[str] = []
    for line in text.splitlines():
        match = re.fullmatch(r"( *)(\S+?)(?:\s{2,}(?:[—#] )?(.*))?", line.rstrip())
        assert match, f"not an entry of a tree: {line!r}"
        depth = len(match[1]) // 2
        assert len(match[1]) == 2 * depth <= 2 * len(trail), f"wrong indentation: {line!r}"
        trail = [*trail[:depth], match[2]]
        entries["".join(trail)] = match[3] or ""
    return entries


def on_disk() -> list[str]:
    """List every folder and module that the tree must show."""
    top = ROOT / "src" / "albert"
    files = [path for path in top.rglob("*.py") if path.name != "__init__.py"]
    folders = {parent for path in top.rglob("*.py") for parent in path.parents if parent.is_relative_to(top)}
    named = [f"{path.relative_to(ROOT)}" for path in files] + [f"{path.relative_to(ROOT)}/" for path in folders]
    return sorted(named)


def commands(page: Path) -> list[tuple[int, list[str]]]:
    """List the `albert` and `make` commands of a page's shell blocks, with their lines."""
    found = []
    for block in blocks(page):
        if block.language in ("bash", "sh", "console") and block.tried:
            line = block.line
            for command in re.split(r"(?<!\\)\n", block.text):
                words = list(shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True))
                start = 0
                for place, word in enumerate([*words, ";"]):
                    if word in (";", "&&", "||", "|", ">", ">>", "&"):
                        part = [piece for piece in words[start:place] if "=" not in piece or piece.startswith("-")]
                        part = part[1:] if part[:1] == ["$"] else part
                        if part and Path(part[0]).name in ("albert", "make"):
                            found.append((line, [Path(part[0]).name, *part[1:]]))
                        start = place + 1
                line += command.count("\n") + 1
    return found


def check_command(words: list[str]) -> None:
    """Check that a command and the options given to it exist."""
    import typer

    from albert.cli import app

    command: Any = typer.main.get_command(app)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        children = getattr(command, "commands", None)
        if word.startswith("-") and word != "-":
            option = word.partition("=")[0]
            here = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
            assert option in known | here, f"{command.name} has no option {option}"
        elif children is not None:
            assert word in children, f"{command.name} has no command {word}"
            command = children[word]


def test_the_tree_in_the_readme_is_the_disk() -> None:
    block = tree_block()
    how = "run: python tests/test_readme.py --write"
    assert block, f"README.md has no ```text block under '{HEADING}': {how}"
    entries = parse_tree(block.text)
    missing, gone = sorted(set(on_disk()) - set(entries)), sorted(set(entries) - set(on_disk()))
    assert not missing, f"README.md's tree lacks {', '.join(missing)}: {how}, then see to the comments"
    assert not gone, f"README.md's tree lists {', '.join(gone)}, which is not on disk: {how}"
    bare = [path for path, comment in entries.items() if not comment]
    assert not bare, f"README.md's tree says nothing about {', '.join(bare)}"


def test_the_python_in_the_readme_runs(tmp_path: Path) -> None:
    lines = [""] * len(README.read_text(encoding="utf-8").splitlines())
    for block in blocks(README):
        if block.language == "python" and block.tried:
            for offset, line in enumerate(block.text.splitlines()):
                lines[block.line - 1 + offset] = line
    script = tmp_path / "README.py"  # each line where it stands on the page, so that a traceback names it
    script.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_on_a_page_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for line, (program, *words) in commands(page):
        try:
            if program == "albert":
                check_command(words)
            else:
                unknown = [word for word in words if not word.startswith("-") and word not in targets]
                assert not unknown, f"make has no target {', '.join(unknown)}"
        except AssertionError as problem:
            pytest.fail(f"{page.name}:{line}: {problem}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_on_a_page_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target} does not exist"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["doctor", "--json"], None),
        (["--debug", "doctor"], None),
        (["study", "params"], None),
        (["docter"], "no command docter"),
        (["doctor", "--jsonn"], "no option --jsonn"),
    ],
)
def test_the_check_of_commands_can_fail(words: list[str], problem: str | None) -> None:
    if problem is None:
        check_command(words)
    else:
        with pytest.raises(AssertionError, match=problem):
            check_command(words)


def test_commands_are_found_behind_prompts_pipes_and_variables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n```bash\n# a comment\n$ albert doctor --json | head > x\n"
        "X=1 .venv/bin/albert info \\\n  base && make test\n```\n"
        "<!-- not run: later -->\n\n```bash\nalbert never\n```\n"
    )
    assert commands(page) == [
        (4, ["albert", "doctor", "--json"]),
        (5, ["albert", "info", "base"]),
        (5, ["make", "test"]),
    ]


def docstring(path: str) -> str:
    """Return the beginning of a module's docstring, up to its first pause."""
    file = ROOT / path / "__init__.py" if path.endswith("/") else ROOT / path
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) if file.is_file() else None
    return re.split(r" \(|\. |; ", (text or "").partition("\n")[0])[0].removesuffix(".")


def draw_tree(entries: dict[str, str]) -> str:
    """Draw the tree as it should be: known entries in their order, new ones at the end of their folder."""

    def below(folder: str) -> list[str]:
        here = [path for path in on_disk() if re.fullmatch(re.escape(folder) + r"[^/]+/?", path)]
        order = {path: place for place, path in enumerate(entries)}
        return sorted(here, key=lambda path: (order.get(path, len(order)), path))

    def draw(path: str, depth: int) -> list[str]:
        name = path if depth == 0 else re.sub(r".*/(?=.)", "", path.removesuffix("/")) + "/" * path.endswith("/")
        line = f"{'  ' * depth}{name:{28 - 2 * depth}}  {entries.get(path) or docstring(path)}"
        return [line.rstrip(), *(inner for child in below(path) for inner in draw(child, depth + 1))]

    return "\n".join(draw("src/albert/", 0))


def main() -> None:
    """Print the tree as it should be, or write it into the README."""
    block = tree_block()
    tree = draw_tree(parse_tree(block.text) if block else {})
    if "--write" not in sys.argv:
        print(tree)
        return
    text = README.read_text(encoding="utf-8")
    if block:
        text = text.replace(f"```text\n{block.text}\n```", f"```text\n{tree}\n```")
    else:
        text += f"\n{HEADING}\n\n```text\n{tree}\n```\n"
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
