"""Copy the tables of a study folder into docs/study, a page each, with their figures: no path of a machine goes along.

    python benchmarks/ship_study.py OUT [NAME …]

OUT is what `albert study --out` wrote; without names, every table in it. What the tables show is written by hand, in
docs/study/README.md.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import recording

DOCS = recording.ROOT / "docs" / "study"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    (_, _, rule), *tables = sections(arguments.out / "report.md")
    for heading, body, figures in tables:
        name = heading.split()[0]
        if arguments.names and name not in arguments.names:
            continue
        title = heading.replace("-", " ").capitalize()
        text = body.replace(str(recording.data_folder().resolve()), "../shared/data")
        (DOCS / f"{name}.md").write_text(f"# {title}\n\n{text}\n\n{rule}\n", encoding="utf-8")
        for figure in figures.split():
            (DOCS / "figures").mkdir(exist_ok=True)
            shutil.copy(arguments.out / figure, DOCS / figure)
        print(DOCS / f"{name}.md")


def sections(report: Path) -> list[tuple[str, str, str]]:
    """Return the heading, the text and the figures of each section; the first is the report's own, with the rule."""
    head, *rest = report.read_text(encoding="utf-8").split("\n## ")
    found = [("", head, head.strip().split("\n\n")[-1])]
    for section in rest:
        heading, body = section.split("\n", 1)
        figures = [line.rpartition("(")[2].rstrip(")") for line in body.splitlines() if line.startswith("![")]
        found.append((heading, body.strip(), " ".join(figures)))
    return found


if __name__ == "__main__":
    main()
