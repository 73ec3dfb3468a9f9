"""Where the real data is, for the tests that use it, and a small vocabulary for all others."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from albert.tokenizer import Tokenizer

# Before torch loads. The tests' models are tiny: two threads that wait for each other make them slower, and on a busy
# machine slower by far. Set it to something else to test with more.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ALBERT_ENGINE", "torch")  # which is the fastest is not for the tests to find out

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that: the commands under test
# could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
pytest_plugins = (
    "invented_text",
    "stores",
    "word_model",
)  # fixtures that several folders share, in files of their own beside this one


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real data sets, or skip with one clear line."""
    folder = Path(os.environ.get("ALBERT_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set ALBERT_DATA")
    return folder


ENGLISH = """The old harbour was quiet when the small grey ship came in from the north.
Nobody had seen such a winter in forty years, and the town was running out of coal and bread.
Maria wrote a long letter to her sister in Paris, but it never left the post office.
Which of the two brothers opened the door, and what did he find behind it?
Peter Smith works for Acme Corporation in New York; his dog waits at home every evening.
The film is a wonderful surprise, warm and funny, and the acting is excellent.
What a terrible, boring waste of time: I left before the end.
It rained on Monday, it rained on Tuesday, and on Wednesday the sun came out at last.
A good question is worth more than ten quick answers, said the teacher to the class.
The machine reads every word of the text and decides about each of them."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Return a vocabulary of 300 pieces, trained on ten English sentences; it knows few other characters."""
    import sentencepiece

    from albert.tokenizer import Tokenizer
    from albert.tokenizer.normalisation import Normalisation

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH.splitlines()), model_writer=model, vocab_size=300, hard_vocab_limit=False,
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]", minloglevel=2, num_threads=1,
    )  # fmt: skip
    return Tokenizer(model.getvalue(), Normalisation())
