"""Where the real data is, for the tests that use it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before torch loads. The tests' models are tiny: two threads that wait for each other make them slower, and on a busy
# machine slower by far. Set it to something else to test with more.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Give the folder of real data sets, or skip with one clear line."""
    folder = Path(os.environ.get("ALBERT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set ALBERT_DATA")
    return folder
