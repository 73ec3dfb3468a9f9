"""Building a store: the same bytes however it is run, and again after whatever stopped it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from albert import files
from albert.data import plan as plan_module
from albert.data.build import BuildProgress, build_store
from albert.data.encode import Job, Part, encode_part
from albert.data.engines import Encoded, LocalEngine
from albert.data.plan import BuildSettings, plan_build
from albert.data.store import TokenStore
from albert.errors import AlbertError, DataError, Interrupted, ResourceError, UsageError
from albert.tokenizer import Tokenizer
from albert.tokenizer.normalisation import Normalisation

SMALL_PARTS = BuildSettings(part_size=5_000)


@pytest.fixture
def text(tmp_path: Path, prose: Callable[..., str]) -> Path:
    """Write text of some 60,000 characters: a dozen parts."""
    path = tmp_path / "text.txt"
    path.write_text(prose(100))
    return path


@pytest.fixture
def run(text: Path, real_tokenizer: Tokenizer) -> Callable[..., Any]:
    """Return `build_store` with small parts in one process, unless told otherwise."""

    def run(folder: Path, **changes: Any) -> Any:
        arguments = {"tokenizer": real_tokenizer, "settings": SMALL_PARTS, "engine": LocalEngine(1)} | changes
        return build_store(arguments.pop("inputs", [text]), folder, **arguments)

    return run


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


class _Stopping:
    """An engine that fails at a part, as a crash would."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.at, self.error, self.encoded = at, error, 0

    def encode(self, parts: Iterable[Part], job: Job) -> Encoded:
        for part in parts:
            if part.index == self.at:
                raise self.error
            self.encoded += 1
            yield encode_part(part, job)


def test_tokens_and_boundaries_are_those_of_the_text(tmp_path: Path, real_tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text("The cat sat. A ship left.\nRain\n\nBread and coal.\n")
    build_store(
        [tmp_path / "a.txt"],
        tmp_path / "store",
        tokenizer=real_tokenizer,
        settings=BuildSettings(),
        engine=LocalEngine(1),
    )
    shard = TokenStore.open(tmp_path / "store").shards[0]
    sentences = ["The cat sat.", "A ship left.", "Rain", "Bread and coal."]
    ids = [real_tokenizer.encode(sentence) for sentence in sentences]
    assert shard.tokens.tolist() == list(chain.from_iterable(ids))
    assert shard.sentences.tolist() == [sum(map(len, ids[:n])) for n in range(5)]
    assert shard.documents.tolist() == [0, 3, 4]


def test_lines_are_sentences_when_told_so(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("The cat sat. A ship left.\nRain\n")
    lines = BuildSettings(sentences="lines", language="de")
    store = run(tmp_path / "store", inputs=[tmp_path / "a.txt"], settings=lines).store
    assert store.num_sentences == 2
    assert store.manifest.settings["language"] is None


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path, run: Callable[..., Any]) -> None:
    run(tmp_path / "one")
    result = run(tmp_path / "three", engine=LocalEngine(3))
    assert result.num_built == len(result.store.shards) >= 10
    assert _files(tmp_path / "one") == _files(tmp_path / "three")


def test_parts_are_whole_documents_across_files(
    tmp_path: Path, run: Callable[..., Any], prose: Callable[..., str]
) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.txt").write_text(prose(1, seed=number))
    store = run(tmp_path / "store", inputs=[tmp_path / "[0-9]*.txt"]).store
    assert store.num_documents == 30
    assert 1 < len(store.shards) < 10


def test_the_same_documents_in_another_format_give_the_same_shards(
    tmp_path: Path, text: Path, run: Callable[..., Any]
) -> None:
    lines = [json.dumps({"text": document}) for document in text.read_text().strip().split("\n\n")]
    (tmp_path / "text.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    stores = [run(tmp_path / path.name[5:], inputs=[path]).store for path in (text, tmp_path / "text.jsonl.gz")]
    assert stores[0].fingerprint == stores[1].fingerprint


def test_documents_that_leave_no_token_are_left_out(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("\u200b\n\nThe cat.\n\n\u200b\n")
    assert run(tmp_path / "store", inputs=[tmp_path / "a.txt"]).store.num_documents == 1


def test_a_document_of_one_sentence_is_kept(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("Rain.\n\nRain.\n")
    assert run(tmp_path / "store", inputs=[tmp_path / "a.txt"]).store.shards[0].documents.tolist() == [0, 1, 2]


def test_what_was_mended_or_skipped_is_in_the_manifest(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"The c\xffat.\n\nRa\0in.\n")
    findings = run(tmp_path / "store", inputs=[path, path]).store.manifest.findings
    assert findings == {
        "broken_utf8": {"count": 1, "first": f"{path}:1"},
        "duplicate_path": {"count": 1, "first": str(path)},
        "nul": {"count": 1, "first": f"{path}:3"},
    }


def test_a_text_without_documents_is_an_error_and_leaves_no_store(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("\n \n")
    with pytest.raises(DataError, match="no text in 1 file"):
        run(tmp_path / "store", inputs=[tmp_path / "a.txt"])
    assert _files(tmp_path / "store") == {}


def test_a_wrong_field_in_the_last_file_is_found_before_anything_is_built(
    tmp_path: Path, text: Path, run: Callable[..., Any]
) -> None:
    (tmp_path / "z.jsonl").write_text('{"body": "Rain."}\n')
    with pytest.raises(DataError, match=r"z\.jsonl:1: no field 'text'"):
        run(tmp_path / "store", inputs=[text, tmp_path / "z.jsonl"])
    assert not (tmp_path / "store").exists()


def test_a_complete_store_is_left_as_it_is(tmp_path: Path, run: Callable[..., Any]) -> None:
    first = run(tmp_path / "store")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*") if path.name != ".lock"}
    again = run(tmp_path / "store", engine=_Stopping(0, AssertionError("nothing is to be encoded")))
    assert (again.num_built, again.damaged) == (0, ())
    assert again.store.fingerprint == first.store.fingerprint
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("crash"), DataError("bad text")])
def test_a_build_that_was_stopped_continues_where_it_was(
    tmp_path: Path, run: Callable[..., Any], error: BaseException
) -> None:
    whole = run(tmp_path / "whole").store
    expected = Interrupted if isinstance(error, KeyboardInterrupt) else type(error)
    with pytest.raises(expected):
        run(tmp_path / "store", engine=_Stopping(5, error))
    with pytest.raises(DataError, match="unfinished"):
        TokenStore.open(tmp_path / "store")
    result = run(tmp_path / "store")
    assert result.num_built == len(whole.shards) - 5
    assert _files(tmp_path / "store") == _files(tmp_path / "whole")


def test_a_torn_line_of_the_journal_costs_one_shard(tmp_path: Path, run: Callable[..., Any]) -> None:
    run(tmp_path / "whole")
    with pytest.raises(RuntimeError):
        run(tmp_path / "store", engine=_Stopping(5, RuntimeError("crash")))
    journal = tmp_path / "store" / "unfinished.journal"
    journal.write_bytes(journal.read_bytes()[:-30])
    assert run(tmp_path / "store").num_built == len(TokenStore.open(tmp_path / "whole").shards) - 4
    assert _files(tmp_path / "store") == _files(tmp_path / "whole")


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("damage", ["flipped", "cut", "missing"])
def test_a_damaged_shard_is_named_and_rebuilt(
    tmp_path: Path, run: Callable[..., Any], damage: str, complete: bool, caplog: pytest.LogCaptureFixture
) -> None:
    whole = run(tmp_path / "whole").store
    if complete:
        run(tmp_path / "store")
    else:
        with pytest.raises(RuntimeError):
            run(tmp_path / "store", engine=_Stopping(5, RuntimeError("crash")))
    path = tmp_path / "store" / "shard-000003.bin"
    contents = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(contents[:100])
    else:
        contents[50] ^= 1
        path.write_bytes(contents)
    result = run(tmp_path / "store")
    assert [shard.path for shard in result.damaged] == [path]
    assert "shard-000003.bin" in caplog.text
    assert result.num_built == (1 if complete else len(whole.shards) - 4)
    assert _files(tmp_path / "store") == _files(tmp_path / "whole")


def test_a_lost_tokenizer_copy_is_written_again(tmp_path: Path, run: Callable[..., Any]) -> None:
    run(tmp_path / "store")
    before = _files(tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "tokenizer")
    run(tmp_path / "store")
    assert _files(tmp_path / "store") == before


def test_temporaries_of_a_killed_build_are_removed(tmp_path: Path, run: Callable[..., Any]) -> None:
    run(tmp_path / "store")
    before = _files(tmp_path / "store")
    for name in (".shard-000001.bin.0123abcd.tmp", ".manifest.json.0123abcd.tmp", "unfinished.journal"):
        (tmp_path / "store" / name).write_bytes(b"half")
    run(tmp_path / "store")
    assert _files(tmp_path / "store") == before


def test_another_configuration_is_refused_naming_the_difference(
    tmp_path: Path, text: Path, run: Callable[..., Any], real_tokenizer: Tokenizer
) -> None:
    run(tmp_path / "store")
    other = tmp_path / "other.txt"
    other.write_text(text.read_text() + "More.\n")
    cased = Tokenizer(real_tokenizer.model, Normalisation(lower_case=False))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"settings": BuildSettings(part_size=5_000, language="de")}, "language was 'en', now 'de'"),
        ({"tokenizer": cased}, f"the tokenizer was {real_tokenizer.fingerprint[:12]}, now {cased.fingerprint[:12]}"),
        ({"inputs": [text, other]}, "the text was in 1 files, now in 2"),
        ({"inputs": [other]}, r"the text of .*other\.txt is not what .*text\.txt held"),
    ]
    for change, message in changes:
        with pytest.raises(UsageError, match=message):
            run(tmp_path / "store", **change)


def test_the_same_text_under_another_name_is_the_same_build(
    tmp_path: Path, text: Path, run: Callable[..., Any]
) -> None:
    run(tmp_path / "store")
    assert run(tmp_path / "store", inputs=[text.rename(tmp_path / "renamed.txt")]).num_built == 0


def test_shards_of_two_versions_are_never_mixed(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError):
        run(tmp_path / "store", engine=_Stopping(5, RuntimeError("crash")))
    versions = plan_module.versions()
    monkeypatch.setattr(plan_module, "versions", lambda: versions | {"sentencex": "99"})
    with pytest.raises(UsageError, match=rf"begun with sentencex {versions['sentencex']}, this is 99"):
        run(tmp_path / "store")


def test_a_language_that_is_none_and_a_field_of_plain_text_are_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="language 'xx' is no language: use a code of ISO 639"):
        BuildSettings(language="xx")
    assert BuildSettings(language="pt-br").language == "pt-br"
    (tmp_path / "a.txt").write_text("The ship came in.")
    with pytest.raises(UsageError, match=r"field 'nofield': only .jsonl and .parquet have fields"):
        plan_build([tmp_path / "a.txt"], tokenizer, BuildSettings(text_field="nofield"))


def test_a_language_is_a_code() -> None:
    for language in ("en", "zh-Hans", "yue"):
        BuildSettings(language=language)
    known = {"DE": "de", "de-AT": "de-at", "deu": "de", "GER": "de", "zh-Hans": "zh-hans", "gsw": "gsw"}
    assert {language: BuildSettings(language=language).language for language in known} == known
    with pytest.raises(UsageError, match="language 'German' is not a code: use one of ISO 639, such as"):
        BuildSettings(language="German")


def test_a_store_inside_the_folder_of_its_text_is_not_taken_for_text(tmp_path: Path, run: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError):
        run(tmp_path / "store", inputs=[tmp_path], engine=_Stopping(5, RuntimeError("crash")))
    run(tmp_path / "store", inputs=[tmp_path])
    assert run(tmp_path / "store", inputs=[tmp_path]).num_built == 0


def test_a_file_name_need_not_be_utf8(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_bytes(b"The c\xffat.\n")
    manifest = run(tmp_path / "store", inputs=[path]).store.manifest
    assert manifest.inputs[0]["path"].endswith("caf?.txt")
    assert manifest.findings["broken_utf8"]["first"].endswith("caf?.txt:1")


def test_a_folder_with_other_files_is_refused_and_not_touched(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(UsageError, match=r"holds other files \(cat\.jpg\) and no store"):
        run(tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


def test_two_builds_in_one_folder_are_refused(tmp_path: Path, run: Callable[..., Any]) -> None:
    def second(_: BuildProgress) -> None:
        with pytest.raises(UsageError, match="writing here"):
            run(tmp_path / "store")

    run(tmp_path / "store", progress=second)


def test_a_full_disk_leaves_whole_shards_only_and_the_build_continues(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _files(run(tmp_path / "whole").store.folder)
    left, fsync = 12, os.fsync

    def full(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ResourceError, match="no space left"):
        run(tmp_path / "store")
    monkeypatch.undo()
    assert all(whole[name] == contents for name, contents in _files(tmp_path / "store").items() if "shard-" in name)
    assert not list((tmp_path / "store").glob(".*.tmp"))
    run(tmp_path / "store")
    assert _files(tmp_path / "store") == whole


def test_progress_ends_with_all_bytes_and_tokens(tmp_path: Path, text: Path, run: Callable[..., Any]) -> None:
    seen: list[BuildProgress] = []
    store = run(tmp_path / "store", progress=seen.append).store
    assert len(seen) == len(store.shards)
    assert [state.bytes_done for state in seen] == sorted(state.bytes_done for state in seen)
    size = text.stat().st_size
    assert seen[-1] == BuildProgress(size, size, store.num_tokens, store.num_tokens)


def test_a_worker_that_dies_is_one_clear_error_and_no_worker_stays(tmp_path: Path, run: Callable[..., Any]) -> None:
    def kill_one(_: BuildProgress) -> None:
        for pid in _children()[:1]:
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(ResourceError, match=r"a worker process died.*fewer --workers"):
        run(tmp_path / "store", engine=LocalEngine(2), progress=kill_one)
    assert _children() == []
    assert isinstance(run(tmp_path / "store").store, TokenStore)


def test_an_error_in_the_parent_ends_the_workers(tmp_path: Path, run: Callable[..., Any]) -> None:
    def fail(_: BuildProgress) -> None:
        raise AlbertError("stop")

    with pytest.raises(AlbertError, match="stop"):
        run(tmp_path / "store", engine=LocalEngine(2), progress=fail)
    assert _children() == []


def _children() -> list[int]:
    """Find the worker processes of this one; threads and processes may end while they are looked at."""
    pids = []
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            pids += [int(pid) for pid in (task / "children").read_text().split()]
    workers = []
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                workers.append(pid)
    return workers
