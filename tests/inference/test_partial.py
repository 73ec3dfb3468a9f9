"""Outputs that grow row by row: what a full disk leaves, and how it is named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from albert.errors import ResourceError
from albert.inference.partial import partial_output

WRITE = """
import resource, sys
from pathlib import Path
from albert.errors import ResourceError
from albert.inference.partial import partial_output, rows_begun

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
out = Path(sys.argv[1])
try:
    with partial_output(out, "a") as partial:
        partial.write({"id": i, "label": "word " * 9} for i in range(partial.rows, 2_000))
except ResourceError as problem:
    print(problem)
print(out.exists(), rows_begun(out))
"""


def write(out: Path, limit: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(out), str(limit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="has no limits of file sizes")
@pytest.mark.parametrize("limit", [100, 9_000, 50_000])  # within the buffer, and beyond it
def test_a_full_disk_names_the_output_and_the_next_run_writes_it(tmp_path: Path, limit: int) -> None:
    out = tmp_path / "rows.csv"
    named, left = write(out, limit)
    assert named.startswith(f"{out}: no space left")
    assert left.startswith("False")
    assert write(out, 2**30) == ["True 0"]
    assert len(out.read_text().splitlines()) == 2_001


def test_what_another_run_left_is_never_taken_for_ones_own(tmp_path: Path) -> None:
    """Run a is interrupted, run b overwrites its rows and ends by a full disk, run a goes on: its own rows alone."""
    out = tmp_path / "rows.jsonl"

    def rows(run: str, first: int, last: int, end: BaseException | None = None) -> Iterator[dict[str, str]]:
        for number in range(first, last):
            yield {"row": f"{run}{number}"}
        if end:
            raise end

    with pytest.raises(KeyboardInterrupt), partial_output(out, "a") as partial:
        partial.write(rows("a", 0, 3, KeyboardInterrupt()))
    with pytest.raises(ResourceError), partial_output(out, "b") as partial:
        partial.write(rows("b", 0, 4, ResourceError("full")))
    with partial_output(out, "a") as partial:
        partial.write(rows("a", partial.rows, 6))
    assert [json.loads(line)["row"] for line in out.read_text().splitlines()] == [f"a{number}" for number in range(6)]
