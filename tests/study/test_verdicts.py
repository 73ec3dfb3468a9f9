"""The rule of verdicts, against intervals worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from albert.study.tables import Finding, Row, Study
from albert.study.verdicts import FAILED, Verdict, interval, judge


def verdict(finding: Finding, first: list[float], second: list[float] | None = None) -> Verdict:
    study = Study("toy", "?", "Table 0", (Row("a"), Row("b")), (finding,))
    (name,) = finding.columns
    rows: dict[str, list[float]] = {"a": first} | ({"b": second} if second is not None else {})
    scores: dict[str, Any] = {
        row: {seed: {name: value} for seed, value in enumerate(values)} for row, values in rows.items()
    }
    (found,) = judge(study, scores)
    return found


def better(column: str = "mlm_loss") -> Finding:
    return Finding("a is better", "a", "better", "b", (column,))


def test_the_interval_is_student_s() -> None:
    found = interval([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert math.isclose(found.high - 2.0, 4.302653 / math.sqrt(3), rel_tol=1e-6)  # t of 2 degrees of freedom


def test_two_seeds_are_never_a_verdict_and_three_may_be() -> None:
    assert verdict(better(), [1.0, 1.0], [2.0, 2.0]).answer == "no verdict"
    assert "2 of the 3" in verdict(better(), [1.0, 1.0], [2.0, 2.0]).sure
    assert verdict(better(), [1.0, 1.1, 1.0], [2.0, 2.0, 2.0]).answer == "agrees"


def test_the_better_side_is_the_column_s_and_worse_is_the_other() -> None:
    low, high = [1.0, 1.1, 1.0], [2.0, 2.0, 2.0]
    assert verdict(better("mlm_loss"), high, low).answer == "disagrees"
    assert verdict(better("mlm_accuracy"), high, low).answer == "agrees"
    assert verdict(Finding("", "a", "worse", "b", ("mlm_loss",)), high, low).answer == "agrees"


def test_differences_are_paired_by_seed() -> None:
    """Seeds that differ far more than the rows do would hide the difference without pairs."""
    seeds = [10.0, 20.0, 30.0]
    assert verdict(better(), [value - 0.1 for value in seeds], seeds).answer == "agrees"
    assert verdict(better(), [20.0 - 0.1, 30.0 - 0.1, 10.0 - 0.1], seeds).answer == "no verdict"


@pytest.mark.parametrize(
    ("values", "answer"),
    [([0.50, 0.51, 0.505], "agrees"), ([0.60, 0.61, 0.605], "disagrees"), ([0.51, 0.53, 0.52], "no verdict")],
)
def test_same_means_within_the_margin_of_a_fixed_value(values: list[float], answer: str) -> None:
    chance = Finding("at chance", "a", "same", 0.5, ("sop_accuracy",))  # a margin of 0.02
    assert verdict(chance, values).answer == answer


def test_what_was_not_measured_has_no_verdict() -> None:
    assert verdict(better("mnli"), [0.5, 0.6, 0.7]).sure == "not measured"


def test_without_a_difference_one_verdict_in_twenty_is_wrong() -> None:
    rng = np.random.default_rng(0)
    answers = [verdict(better(), rng.normal(size=5).tolist(), rng.normal(size=5).tolist()).answer for _ in range(2000)]
    assert 0.035 < 1 - answers.count("no verdict") / len(answers) < 0.065


def test_a_diverged_run_leaves_no_verdict_of_the_lucky_seeds() -> None:
    study = Study("toy", "?", "Table 0", (Row("a"), Row("b")), (better(),))
    scores: dict[str, Any] = {
        row: {seed: {"mlm_loss": loss} for seed in range(5)} for row, loss in (("a", 2), ("b", 3))
    }
    assert judge(study, scores)[0].answer == "agrees"
    scores["a"][3] = scores["a"][4] = {"problem": "the loss is nan"}
    (found,) = judge(study, scores)
    assert found.answer == "no verdict"
    assert found.sure == "2 of the seeds diverged"


def test_a_tuning_that_diverged_leaves_no_verdict_on_its_task_alone() -> None:
    study = Study("toy", "?", "Table 0", (Row("a"), Row("b")), (better("sst-2"), better("mnli")))
    scores: dict[str, Any] = {
        row: {seed: {"sst-2": score, "mnli": score} for seed in range(3)} for row, score in (("a", 0.8), ("b", 0.7))
    }
    scores["b"][1] |= {"sst-2": None, FAILED: ["sst-2"]}
    first, second = judge(study, scores)
    assert (first.answer, first.sure) == ("no verdict", "1 of the seeds diverged")
    assert second.answer == "agrees"


def test_the_choice_of_examples_counts_where_an_accuracy_is_compared_with_a_fixed_number() -> None:
    """Of 2,000 examples an accuracy of one half deviates by 1.1 points, however well the seeds agree."""
    finding = Finding("at chance", "a", "same", 0.5, ("sop_accuracy",))
    study = Study("toy", "?", "Table 0", (Row("a"),), (finding,))
    seeds = (0.501, 0.504, 0.507)

    def judged(examples: int) -> Verdict:
        rows = {seed: {"sop_accuracy": value, "sop_examples": examples} for seed, value in enumerate(seeds)}
        return judge(study, {"a": rows})[0]

    alone = interval([value - 0.5 for value in seeds])
    assert judged(2_000_000).answer == "agrees"
    few = judged(2_000)
    assert few.answer == "no verdict"
    assert few.difference is not None
    expected = math.hypot(alone.high - alone.mean, 1.96 * math.sqrt(0.504 * 0.496 / 2_000))
    assert few.difference.high - few.difference.mean == pytest.approx(expected)
