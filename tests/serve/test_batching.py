"""The queue: batches within their budget, turns, deadlines, cancelling, and a failure that stays alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import albert
from albert.batch import STATES, Batch, Said, Wanted
from albert.errors import UsageError
from albert.inference.embed import Embed
from albert.inference.predictor import Predictor
from albert.serve.batching import Batcher, Item, Lane
from albert.serve.metrics import Metrics
from albert.serve.refusals import Refusal
from albert.serve.served import Models
from albert.serve.settings import ServeSettings, name_models
from albert.tasks.task import Feature
from servers import Running, Start

POISON = 13


class Engine:
    """Says of each token its id; fails where there is poison; waits for the test where it is told to."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = threading.Event()
        self.go.set()
        self.running = threading.Event()

    def run(self, batch: Batch, wanted: Wanted) -> list[Said]:
        self.running.set()
        assert self.go.wait(20)
        self.batches.append(batch.lengths.tolist())
        if POISON in batch.token_ids:
            raise RuntimeError("poison")
        rows = np.split(batch.token_ids.astype(np.float32)[:, None], np.cumsum(batch.lengths)[:-1])
        return [{STATES: (row,)} for row in rows]


def item(number: int, length: int = 4, *, windows: int = 1) -> Item:
    return Item(None, [Feature([number] * length, [0] * length) for _ in range(windows)])


def use(
    body: Callable[[Batcher, Lane, Engine], Coroutine[Any, Any, None]], *, tokens: int = 16, queue: int = 1000
) -> None:
    """Run a test in an event loop with a queue of its own."""

    async def main() -> None:
        engine = Engine()
        batcher = Batcher(batch_tokens=tokens, batch_wait=0.01, queue_tokens=queue, metrics=Metrics())
        lane = Lane(Predictor(engine, None, batch_tokens=tokens), Embed(16))  # type: ignore[arg-type]
        batcher.start()
        try:
            await body(batcher, lane, engine)
        finally:
            engine.go.set()
            await batcher.stop()

    asyncio.run(main())


def values(decided: Any) -> list[float]:
    return [float(one[0]) for one in decided.results]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


def test_requests_share_batches_that_keep_to_the_budget_and_nothing_is_swapped() -> None:
    async def body(batcher: Batcher, lane: Lane, engine: Engine) -> None:
        asked = [[20 + 10 * i + j for j in range(i)] for i in range(1, 8)]
        done = await asyncio.gather(*(batcher.decide(lane, [item(n) for n in own], seconds=20) for own in asked))
        assert [values(one) for one in done] == asked
        assert max(map(sum, engine.batches)) == 16
        assert len(engine.batches) == 7  # 28 sequences of 4 tokens, four of them in each
        assert batcher.queued_tokens == 0

    use(body)


def test_a_short_request_does_not_wait_for_a_long_list_before_it() -> None:
    async def body(batcher: Batcher, lane: Lane, engine: Engine) -> None:
        engine.go.clear()
        long = asyncio.create_task(batcher.decide(lane, [item(20) for _ in range(40)], seconds=20))  # noqa: RUF006
        await until(engine.running.is_set)
        short = asyncio.create_task(batcher.decide(lane, [item(30)], seconds=20))
        await asyncio.sleep(0)
        engine.go.set()
        await short
        assert not long.done()
        assert len(engine.batches) < 9
        assert len(values(await long)) == 40

    use(body)


def test_the_windows_of_a_long_text_are_divided_over_batches() -> None:
    async def body(batcher: Batcher, lane: Lane, engine: Engine) -> None:
        assert values(await batcher.decide(lane, [item(20, 10, windows=5)], seconds=20)) == [20.0]
        assert engine.batches == [[10]] * 5

    use(body)


def test_poison_fails_the_request_that_holds_it_and_no_other() -> None:
    async def body(batcher: Batcher, lane: Lane, _: Engine) -> None:
        asked = [[item(20)], [item(21), item(POISON)], [item(22)]]
        done = await asyncio.gather(*(batcher.decide(lane, own, seconds=20) for own in asked), return_exceptions=True)
        assert values(done[0]) == [20.0]
        assert values(done[2]) == [22.0]
        assert isinstance(done[1], Refusal)
        assert (done[1].status_code, done[1].kind) == (424, "Backend")
        assert done[1].message.startswith("inputs[1]: ")
        assert values(await batcher.decide(lane, [item(23)], seconds=20)) == [23.0]

    use(body)


def test_a_full_queue_refuses_and_a_request_above_it_is_too_large() -> None:
    async def body(batcher: Batcher, lane: Lane, engine: Engine) -> None:
        engine.go.clear()
        first = asyncio.create_task(batcher.decide(lane, [item(20)], seconds=20))
        await until(engine.running.is_set)
        waiting = asyncio.create_task(batcher.decide(lane, [item(21) for _ in range(9)], seconds=20))  # noqa: RUF006
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await batcher.decide(lane, [item(22), item(22)], seconds=20)
        assert (refused.value.status_code, refused.value.headers) == (429, {"Retry-After": "1"})
        with pytest.raises(Refusal) as refused:
            await batcher.decide(lane, [item(22) for _ in range(11)], seconds=20)
        assert refused.value.status_code == 413
        engine.go.set()
        assert values(await first) + values(await waiting) == [20.0] + [21.0] * 9

    use(body, queue=40)


def test_a_deadline_and_a_cancelled_request_leave_the_queue() -> None:
    async def body(batcher: Batcher, lane: Lane, engine: Engine) -> None:
        engine.go.clear()
        first = asyncio.create_task(batcher.decide(lane, [item(20)], seconds=20))
        await until(engine.running.is_set)
        gone = asyncio.create_task(batcher.decide(lane, [item(21)], seconds=20))
        await asyncio.sleep(0)
        assert batcher.queued_tokens == 4
        gone.cancel()
        with pytest.raises(Refusal) as late:
            await batcher.decide(lane, [item(22)], seconds=0.01)
        assert late.value.status_code == 429
        assert batcher.queued_tokens == 0
        engine.go.set()
        assert values(await first) == [20.0]
        assert engine.batches == [[4]]

    use(body)


def test_concurrent_clients_get_the_offline_answers_and_the_metrics_count_them(
    start: Start, folders: dict[str, str], texts: list[str]
) -> None:
    server = start("plain", "film", batch_tokens=256)
    offline, film = albert.load(folders["plain"]), albert.load(folders["film"])
    truth = offline.embed(texts)
    classes = [one.probabilities["good"] for one in film.classify(texts)]

    def client(number: int) -> None:
        own = range(number, len(texts), 12)
        for i in own:
            (vector,) = server.post("/embed", inputs=texts[i], normalize=False)
            assert np.allclose(vector, truth[i], atol=1e-5)
        scores = server.post("/predict", inputs=[[texts[i]] for i in own])
        found = [one["score"] for each in scores for one in each if one["label"] == "good"]
        assert np.allclose(found, [classes[i] for i in own], atol=1e-5)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(client, range(12)))
    numbers = metrics(server)
    assert numbers['te_request_count{method="single"}'] == numbers['te_request_success{method="single"}'] == len(texts)
    assert numbers['te_request_success{method="batch"}'] == 12
    assert numbers["te_request_input_length_count"] == 2 * len(texts)
    assert numbers["te_batch_next_size_count"] < numbers["te_batch_next_size_sum"] >= 2 * len(texts)  # some in windows


def metrics(server: Running) -> dict[str, float]:
    lines = server.ask("GET", "/metrics").body.decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def test_exact_answers_are_bitwise_the_same_whatever_else_is_asked(start: Start, texts: list[str]) -> None:
    server = start("plain", exact=True)
    alone = [server.post("/embed", inputs=text) for text in texts[:8]]
    assert [[row] for row in server.post("/embed", inputs=texts[:40])[:8]] == alone


def test_a_poison_text_fails_alone_over_http(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start("plain", batch_wait=0.2)
    engine = server.service.models.served["plain"].predictor.engine
    poison = server.service.models.served["plain"].tokenizer.encode("terrible")[-1]
    run = engine.run

    def fail(batch: Batch, wanted: Wanted) -> list[Said]:
        if poison in batch.token_ids:
            raise RuntimeError("poison")
        return run(batch, wanted)

    monkeypatch.setattr(engine, "run", fail)
    with ThreadPoolExecutor(3) as pool:
        done = list(
            pool.map(lambda text: server.ask("POST", "/embed", {"inputs": text}), ["a ship", "terrible", "a dog"])
        )
    assert [one.status for one in done] == [200, 424, 200]
    assert server.ask("GET", "/health").status == 200


def test_a_budget_below_the_longest_text_is_refused(folders: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--batch-tokens 63 is less than the longest sequence of plain"):
        Models.load(ServeSettings(models={"plain": folders["plain"]}, batch_tokens=63, queue_tokens=63))


def test_models_are_named_by_their_path_or_as_told() -> None:
    assert name_models(["tiny-en", "a=runs/x", "runs/sst/model", "./runs/qa/"]) == {
        "tiny-en": "tiny-en", "a": "runs/x", "sst": "runs/sst/model", "qa": "./runs/qa/",
    }  # fmt: skip
    for words in (["=x"], ["a b=x"], ["a="], ["tiny-en", "tiny-en"], ["/"]):
        with pytest.raises(UsageError):
            name_models(words)
