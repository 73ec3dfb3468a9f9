"""The command as a process: its end by SIGTERM under load, workers that are killed, refusals at start."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from servers import command


def send(connection: HTTPConnection, inputs: object) -> None:
    connection.request("POST", "/embed", json.dumps({"inputs": inputs}), {"Content-Type": "application/json"})


def receive(connection: HTTPConnection) -> int:
    response = connection.getresponse()
    json.loads(response.read())
    return response.status


def ping(port: int) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", "/ping")
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_sigterm_under_load_answers_all_in_flight_and_exits_0(folders: dict[str, str], texts: list[str]) -> None:
    with command(folders["plain"], "--batch-tokens", "64", "--timeout", "300", "--set", "drain=300") as (process, port):
        statuses: list[int] = []
        lost: list[str] = []
        under_way = threading.Semaphore(0)
        sending = threading.Lock()  # who holds it may send a request; none is half sent when the test has it
        stopped = False

        def client() -> None:
            while True:
                connection = HTTPConnection("127.0.0.1", port, timeout=300)
                try:
                    with sending:
                        if stopped:
                            return
                        send(connection, texts[:30])
                    under_way.release()
                    statuses.append(receive(connection))
                except (OSError, HTTPException) as problem:
                    lost.append(repr(problem))
                finally:
                    connection.close()

        clients = [threading.Thread(target=client) for _ in range(6)]
        for one in clients:
            one.start()
        for _ in range(8):  # some are answered, others wait
            under_way.acquire()
        process.send_signal(signal.SIGTERM)
        for _ in range(8):  # while it drains, it takes more
            under_way.acquire()
        with sending:
            stopped = True
        for _ in range(2):  # answered after all that was sent before has been read
            assert ping(port) == 200
        process.send_signal(signal.SIGTERM)  # the second ends the draining: what is in flight is answered still
        for one in clients:
            one.join(300)
        assert process.wait(300) == 0
    assert lost == []
    assert len(statuses) >= 16
    assert set(statuses) == {200}


def test_a_killed_worker_comes_back_and_the_others_answer(folders: dict[str, str]) -> None:
    with command(folders["plain"], "--workers", "2") as (process, port):
        workers = children(process.pid)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        end = time.monotonic() + 300
        while len(set(children(process.pid)) - {workers[0]}) < 2:
            assert time.monotonic() < end, "no worker came back"
            time.sleep(0.1)
        connection = HTTPConnection("127.0.0.1", port, timeout=300)
        send(connection, "a ship")
        assert receive(connection) == 200  # by the other one
        connection.close()
        connection = HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("GET", "/metrics")
        assert b'te_request_success{method="single"} 1.0' in connection.getresponse().read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


def children(pid: int) -> list[int]:
    """Return the servers among the children of a process; multiprocessing has a helper of its own."""
    found = []
    for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            found += [int(word)] if b"spawn_main" in Path(f"/proc/{word}/cmdline").read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["tiny-en", "--batch-tokens", "100"],
            2,
            "--batch-tokens 100 is less than the longest sequence of tiny-en (512)",
        ),
        (["no-such-model"], 4, "no such model folder"),
        (["tiny-en", "--set", "max_inptus=3"], 2, "did you mean 'max_inputs'"),
        (["tiny-en", "--set", "queue_tokens=5"], 2, "is less than batch_tokens"),
    ],
)
def test_what_can_not_be_served_is_refused_at_start(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from albert.cli import main

    monkeypatch.setattr(sys, "argv", ["albert", "serve", *words, "--port", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert said in capsys.readouterr().err


def test_a_taken_port_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from albert.cli import main

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(sys, "argv", ["albert", "serve", "tiny-en", "--port", str(taken.getsockname()[1])])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    assert "Address already in use" in capsys.readouterr().err
