"""Settings: files and assignments, unknown keys, wrong kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from albert.errors import UsageError
from albert.pretrain.settings import InitSettings, PretrainSettings
from albert.settings import parse_assignments, read_settings
from albert.train.settings import stage_at


def test_assignments_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[train]\nsteps = 5\nseed = 3\n[grow]\ndepth = [[0.0, 3], [0.5, 6]]\n")
    settings = read_settings(
        PretrainSettings, file=file, assignments=["train.steps=9", "optimizer.lr=paper"], defaults={"train.keep": 7}
    )
    assert (settings.train.steps, settings.train.seed, settings.train.keep) == (9, 3, 7)
    assert settings.optimizer.lr == "paper"
    assert settings.grow.depth == [(0.0, 3), (0.5, 6)]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.stepps=3", "'train.stepps' is unknown: did you mean 'steps'"),
        ("trian.steps=3", "'trian' is unknown: did you mean 'train'"),
        ("train.steps=many", "train.steps='many'"),
        ("train.steps=0", "train.steps=0"),
        ("train.steps=1.5", "train.steps=1.5"),
        ("optimizer.lr=fast", "optimizer.lr='fast'"),
        ("optimizer.lr=nan", "optimizer.lr"),
        ("grow.depth=[[0.5, 3]]", "grow.depth"),
        ("train", "write it as key=value"),
        ("train.steps.more=3", "train.steps"),
        ("data.max_length=9", "max_length=9 is out of range: use 16 to 8192 tokens"),
        ("data.objective=spo", "did you mean 'sop'"),
        ("data.mask_prob=nan", "mask_prob=nan is out of range"),
        ("data.seed=3", "'data.seed' is unknown: did you mean 'train.seed'?"),
        ("steps=3", "'steps' is unknown: did you mean 'train.steps'?"),
    ],
)
def test_a_wrong_setting_is_named_with_its_rule(assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(PretrainSettings, assignments=[assignment])
    assert message in str(caught.value)


def test_an_old_name_or_value_works_and_says_the_new_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "run.toml"
    file.write_text('positions = "waves"\nwords = "random"\n')
    settings = read_settings(PretrainSettings, file=file, assignments=["words=counts"])
    assert settings.model_init == InitSettings(positions="sinusoidal", words="ppmi")
    assert "the setting positions='waves' is now called model_init.positions='sinusoidal'" in caplog.text
    newer = read_settings(PretrainSettings, file=file, assignments=["model_init.positions=random"])
    assert newer.model_init.positions == "random", "an assignment wins over the file, whichever name each uses"
    with pytest.raises(UsageError, match=r"words='counts' is the old name of model_init\.words='ppmi'"):
        read_settings(PretrainSettings, assignments=["model_init.words=ppmi", "words=counts"])
    with pytest.raises(UsageError, match=r"model_init\.positions='wavs'"):
        read_settings(PretrainSettings, assignments=["positions=wavs"])


def test_new_names_bring_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    read_settings(PretrainSettings, assignments=["model_init.words=ppmi"])
    assert caplog.text == ""


@pytest.mark.parametrize("text", ["[train", "train = ", "\x00"])
def test_a_broken_file_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"x\.toml: not valid TOML"):
        read_settings(PretrainSettings, file=file)
    with pytest.raises(UsageError, match="can't be read"):
        read_settings(PretrainSettings, file=tmp_path / "absent.toml")


def test_values_are_toml_or_text() -> None:
    values = parse_assignments(["a=1", "b=true", "c=[1, 2]", "d=hello", "e = 2.5 ", 'f="x=y"'])
    assert values == {"a": 1, "b": True, "c": [1, 2], "d": "hello", "e": 2.5, "f": "x=y"}


def test_stages_are_in_force_from_their_share_on() -> None:
    stages = [(0.0, 3), (0.5, 6), (0.8, 12)]
    assert [stage_at(stages, step, steps=10, constant=12) for step in range(10)] == [3] * 5 + [6] * 3 + [12] * 2
    assert stage_at([], 3, steps=10, constant=12) == 12
