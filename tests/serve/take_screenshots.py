"""Take the pictures of docs/serving.md: `python tests/serve/take_screenshots.py URL FOLDER`, of a server that runs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browser import browsing, find_chromium

SHOTS = (  # name, model, verb, width, height, phone, dark
    ("classes", "sst", "predict", 900, 860, False, False),
    ("answer", "squad", "answer", 900, 1000, False, True),
    ("blanks", "tiny-en", "fill", 390, 844, True, False),
    ("tags", "tags", "tag", 900, 760, False, False),
    ("heat-map", "tiny-en", "similarity", 900, 760, False, False),
)


def main(url: str, folder: Path) -> None:
    """Ask the example of each task, and take its picture."""
    program = find_chromium()
    assert program, "Chromium is missing"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, browsing(program, Path(profile)) as page:
        for name, model, verb, width, height, phone, dark in SHOTS:
            page.resize(width, height, phone=phone, dark=dark)
            page.open(url)
            page.wait("document.querySelector('#models button') !== null")
            if not page.run(f"document.querySelector('#models [data-name=\"{model}\"]') !== null"):
                print(f"{name}: no model {model}")
                continue
            page.click(f'#models [data-name="{model}"]')
            page.click(f'#verbs [data-name="{verb}"]')
            page.click("#ask button[type=submit]")
            page.wait("document.querySelector('#result').children.length > 0")
            if verb != "similarity":
                page.wait("!document.querySelector('#depth').hidden")
            whole = page.run("document.documentElement.scrollHeight")
            page.resize(width, min(whole, 1300), phone=phone, dark=dark)
            page.shoot(folder / f"serving-{name}.png")
            print(name, page.complaints())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
