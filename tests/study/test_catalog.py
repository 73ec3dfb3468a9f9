"""The tables are whole: rows, findings and the paper's numbers fit together, at every scale."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.errors import UsageError
from albert.model.accounting import count_parameters
from albert.study.catalog import STUDIES
from albert.study.resolve import Request, Run, resolve
from albert.study.tables import COLUMNS, QUALITY, Study, column
from albert.study.verdicts import NORMAL

MakeRequest = Callable[..., Request]


def runs(name: str, request: Request) -> dict[str, Run]:
    return {row: run for (row, _), run in resolve(STUDIES[name], request, pace=lambda _: 1.0).runs.items()}


def test_the_studies_that_the_paper_has_are_there() -> None:
    paper = ["sentence-order", "sharing", "embedding", "recipe", "depth", "width", "bigger", "dropout", "time", "data"]
    assert list(STUDIES)[:10] == paper  # in the order in which `all` runs them
    assert {"layers", "speed", "masking", "optimizer"} <= set(STUDIES)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_finding_is_about_rows_and_columns_that_there_are(study: Study) -> None:
    names = [row.name for row in study.rows]
    assert len(set(names)) == len(names)
    for finding in study.findings:
        assert finding.row in names
        assert isinstance(finding.against, float) or finding.against in names
        assert set(finding.columns) <= {*COLUMNS, *QUALITY}
    assert set(study.columns) <= set(COLUMNS)


@pytest.mark.parametrize("scale", ["tiny", "small", "base"])
@pytest.mark.parametrize("name", STUDIES)
def test_every_row_resolves_at_every_scale_to_a_schedule_of_its_own_length(
    name: str, scale: str, request_for: MakeRequest
) -> None:
    tokens = 80_000 if name == "data" else 2_000_000  # the store must have more than a tenth of it
    for row, run in runs(name, request_for(scale=scale, tokens=tokens)).items():
        train, length = run.settings.train, run.settings.data.max_length
        expected = tokens // (train.batch_size * length)
        assert train.steps == (expected if not run.processes else 40), row
        assert run.settings.grow.depth in ([], run.settings.grow.depth)


@pytest.mark.parametrize(("scale", "sizes"), [("tiny", [11, 21, 43, 128]), ("base", [64, 128, 256, 768])])
def test_embeddings_are_a_twelfth_a_sixth_a_third_and_all_of_the_width(
    scale: str, sizes: list[int], request_for: MakeRequest
) -> None:
    found = [run.config.embedding_size for run in runs("embedding", request_for(scale=scale)).values()]
    assert found == sizes * 2


@pytest.mark.parametrize("name", ["sharing", "embedding"])
def test_at_base_scale_the_parameters_are_those_that_the_paper_prints(name: str, request_for: MakeRequest) -> None:
    for row, run in runs(name, request_for(scale="base")).items():
        printed = int(STUDIES[name].row(row).paper["parameters"].removesuffix("M"))
        counted = count_parameters(run.config).backbone / 1e6
        assert abs(counted - printed) < 1.2, row  # the paper rounds 107.7 and 108.9 alike


def test_rows_common_to_two_tables_are_the_same_run(request_for: MakeRequest) -> None:
    request = request_for(scale="tiny", tokens=80_000)
    sharing, embedding, order = (runs(name, request) for name in ("sharing", "embedding", "sentence-order"))
    assert sharing["E=H/6, all"].key == embedding["all, E=H/6"].key
    assert sharing["E=H, none"].key == embedding["none, E=H"].key
    assert order["SOP"].key == runs("data", request)["all of the text"].key == runs("bigger", request)["all, H"].key
    assert len({run.key for run in [*sharing.values(), *embedding.values(), *order.values()]}) == 8 + 4 + 3


def test_another_seed_another_budget_and_other_settings_are_another_run(request_for: MakeRequest) -> None:
    same = [request_for(scale="tiny", steps=10), request_for(scale="tiny", steps=10)]
    other = [request_for(scale="tiny", steps=11), request_for(scale="tiny", steps=10, changes={"optimizer.lr": 0.5})]
    keys = [runs("sentence-order", request)["SOP"].key for request in (*same, *other)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    two = resolve(STUDIES["sentence-order"], request_for(scale="tiny", steps=10, seeds=2), pace=lambda _: 1.0)
    assert two.runs["SOP", 0].key == keys[0] != two.runs["SOP", 1].key


def test_rows_of_equal_time_get_steps_by_their_pace(request_for: MakeRequest) -> None:
    def pace(run: Run) -> float:
        return 4.0 if run.config.hidden_size > 128 else 1.0

    found = resolve(STUDIES["time"], request_for(scale="tiny", steps=100), pace=pace).runs
    assert [run.settings.train.steps for run in found.values()] == [100, 25]


def test_a_warm_start_keeps_the_words_of_the_model_that_it_goes_on_from(request_for: MakeRequest) -> None:
    found = runs("depth", request_for(scale="tiny"))
    warm = found["12 layers, warm"]
    assert warm.start is not None
    assert warm.start.key == found["6 layers, warm"].key
    assert (warm.settings.model_init.words, warm.settings.model_init.positions) == ("random", "random")
    assert warm.settings.model == {"num_hidden_layers": 12}
    assert warm.config.num_hidden_layers == 12


def test_the_paper_s_scores_are_numbers() -> None:
    for study in STUDIES.values():
        for row in study.rows:
            assert all(re.match(r"~?\d", value) for value in row.paper.values()), row.name


def test_the_help_asks_the_whole_question_of_every_study() -> None:
    shown = CliRunner().invoke(app, ["study", "--help"])
    words = " ".join(shown.stdout.split())
    for study in STUDIES.values():
        assert f"{study.name} {study.question} ({study.source})" in words


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_what_is_compared_with_a_number_can_be_decided_by_the_examples(study: Study, request_for: MakeRequest) -> None:
    """A margin below the deviation of the examples alone could never be met, whatever the seeds say."""
    request = request_for(scale="tiny")
    for finding in study.findings:
        if isinstance(finding.against, float) and finding.says == "same":
            examples = runs(study.name, request)[finding.row].settings.evaluation.examples
            for name in finding.columns:
                deviation = NORMAL * math.sqrt(finding.against * (1 - finding.against) / examples)
                assert deviation < 0.9 * column(name).margin, name


def test_a_row_that_learns_from_a_part_of_a_store_too_small_for_it_is_refused(request_for: MakeRequest) -> None:
    with pytest.raises(UsageError, match="build a larger store"):
        runs("data", request_for(scale="tiny", tokens=10**9))


def test_settings_of_later_versions_leave_the_names_of_finished_runs(request_for: MakeRequest) -> None:
    run = runs("sentence-order", request_for())["SOP"]
    assert "order_weight" not in run.identity["settings"]
    other = replace(run, settings=run.settings.model_copy(update={"order_weight": 2.0}))
    assert other.identity["settings"]["order_weight"] == 2.0
    assert other.key != run.key
