"""The cost model of `albert plan`: its parts by hand, and the order of the paper's speeds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import UsageError
from albert.model.presets import preset
from albert.pretrain.cost import DEVICES, Assumptions, Work, estimate, measure_here
from albert.study.table2 import SPEEDS, modelled_speeds

A100 = DEVICES["a100"]
XXLARGE = Work(preset("xxlarge"), tokens=262e9, count=8, nodes=2)


def test_the_order_of_the_paper_s_speeds_is_reproduced() -> None:
    rows = {row.model: row.modelled for row in modelled_speeds(Assumptions())}
    assert sorted(rows, key=rows.__getitem__) == sorted(SPEEDS, key=SPEEDS.__getitem__)
    assert all(row.hangs_on for row in modelled_speeds(Assumptions()))


def test_sharing_is_faster_only_by_what_it_does_not_send() -> None:
    """With links that cost nothing, and no optimizer, ALBERT-large has the speed of BERT-large."""
    free = {row.model: row.modelled for row in modelled_speeds(replace(Assumptions(), overlap=1.0, optimizer_passes=0))}
    assert free["albert-large-v1"] == pytest.approx(1.0, rel=0.02)


def test_the_parts_of_a_step_are_what_one_works_out_by_hand() -> None:
    found = estimate(XXLARGE, A100, Assumptions())
    layers = 2 * 12 * (12 * 4096**2 + 2 * 512 * 4096)
    other = 2 * 128 * 4096 + 2 * 0.15 * 128 * (4096 + 30_000)
    assert found.products == pytest.approx(256 * 512 * 3 * (layers + other) / (312e12 * 0.5))
    assert found.reduced_bytes == 4 * 223_158_450
    ring = 2 * 7 / 8 * found.reduced_bytes / 300e9 + 2 * 1 / 2 * found.reduced_bytes / 25e9
    assert found.communication == pytest.approx(ring)
    assert found.hours == pytest.approx(262e9 / (4096 * 512) * found.step / 3600)
    assert found.kilowatt_hours == pytest.approx(found.hours * 16 * 0.4 * 1.2)
    assert found.dollars == pytest.approx(found.hours * 16 * 1.8)


def test_less_memory_leads_to_smaller_micro_batches_then_to_checkpointing_then_to_nothing() -> None:
    chosen = [estimate(XXLARGE, replace(A100, memory=memory), Assumptions()).fit for memory in (80, 20, 6.5, 3)]
    assert chosen[0] is not None
    assert chosen[1] is not None
    assert chosen[2] is not None
    assert chosen[0].micro_batch > chosen[1].micro_batch
    assert [fit.checkpointing for fit in chosen[:3] if fit] == [False, False, True]
    assert chosen[3] is None


def test_one_device_sends_nothing_and_a_batch_must_divide() -> None:
    alone = estimate(Work(preset("base"), 1e9, count=1), A100, Assumptions())
    assert alone.communication == alone.reduced_bytes == 0
    with pytest.raises(UsageError, match="not a multiple of the 3 devices"):
        estimate(Work(preset("base"), 1e9, count=3), A100, Assumptions())


def test_every_assumption_is_a_flag_and_is_printed() -> None:
    words = ["plan", "--model", "xxlarge", "--gpu", "a100", "--count", "8", "--nodes", "2"]
    printed = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    usual = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)
    for name, value in {**vars(A100), **vars(Assumptions())}.items():
        assert f"{name} {value:g}" in printed
        flag = f"--{name.replace('_', '-')}"
        told = json.loads(
            CliRunner().invoke(app, [*words, "--json", flag, str(value / 2 + 0.1)], catch_exceptions=False).stdout
        )
        assert told["device" if name in vars(A100) else "assumptions"][name] == value / 2 + 0.1
        assert told != usual


def test_this_machine_is_measured_as_a_device() -> None:
    here = measure_here(seconds=0.05)
    assert here.tflops > 1e-4
    assert here.bandwidth > 0.01
