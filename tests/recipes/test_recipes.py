"""Every shipped recipe is a test case: it says what it is, resolves to a plan, and trains at its own settings."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from albert.cli import app
from albert.data.store import TokenStore
from albert.errors import UsageError
from albert.model.presets import PRESETS, full_name
from albert.pretrain import Pretrained, pretrain
from albert.pretrain.settings import PretrainSettings
from albert.recipes import SHIPPED, locate_recipe, shipped_recipes
from albert.settings import read_settings

KNOWN = "compare, eight-gpu, laptop, one-gpu, overnight, paper, taught, taught-further, taught-pairs, taught-words"
TEACHER = ["teacher.model=tiny-en"]
GIVEN = {
    "taught": TEACHER,
    "taught-further": TEACHER,
    "taught-pairs": TEACHER,
    "taught-words": TEACHER,
}  # left to whoever starts it
UNTRIED = ("paper", "one-gpu", "eight-gpu")  # as a whole, and on any GPU
TINY = [
    "model.embedding_size=16", "model.hidden_size=32", "model.num_attention_heads=2", "model.intermediate_size=64",
    "train.steps=5", "train.batch_size=4", "train.log_every=1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spend next to no time on measuring time."""
    monkeypatch.setattr("albert.pretrain.pace.BUDGET", 0.2)
    monkeypatch.setattr("albert.pretrain.lessons.SAMPLE", 64)


def command(store: Path, out: Path, *words: str) -> dict[str, Any]:
    """Run `albert pretrain … --json` in this process and read what it says."""
    arguments = ["pretrain", "--data", str(store), "--out", str(out), "--json", *words]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def preset_for(name: str) -> str:
    """Return a recipe's preset, or another start to one that goes on from a trained model: that can't be made tiny."""
    start = str(read_settings(PretrainSettings, file=locate_recipe(name)).start_from)
    return start if full_name(start) in PRESETS else "small"


def tiny(*more: str) -> list[str]:
    return [word for assignment in (*TINY, *more) for word in ("--set", assignment)]


def test_the_recipes_that_the_pages_name_are_shipped() -> None:
    assert {"paper", "laptop", "one-gpu", "eight-gpu"} <= set(shipped_recipes())


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_recipe_says_for_whom_it_is_what_it_costs_and_what_was_tried(name: str) -> None:
    text = (SHIPPED / f"{name}.toml").read_text(encoding="utf-8")
    lines = text.partition("\n\n")[0].splitlines()
    assert all(line.startswith("#") for line in lines)
    head = " ".join(line.strip("# ") for line in lines)
    for words in ("For whom:", "Cost:", "Tried:", *(("Not tried:",) if name in UNTRIED else ())):
        assert words in head
    settings = read_settings(PretrainSettings, file=SHIPPED / f"{name}.toml")
    assert settings.start_from is not None
    assert full_name(settings.start_from) in PRESETS or settings.start_from == "tiny-en"


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_recipe_resolves_to_a_plan(name: str, store_folder: Path, tmp_path: Path) -> None:
    """The real steps and batch, with a tiny model: its time is then soon found."""
    small = [word for assignment in (*TINY[:4], *GIVEN.get(name, [])) for word in ("--set", assignment)]
    plan = command(store_folder, tmp_path / "run", "--config", name, "--model", preset_for(name), "--dry-run", *small)
    written = tomllib.loads((SHIPPED / f"{name}.toml").read_text(encoding="utf-8"))
    assert plan["steps"] == written["train"]["steps"]
    assert plan["tokens_per_step"] == written["train"]["batch_size"] * written["data"]["max_length"]
    assert plan["pace"]["seconds"] > 0
    if name == "paper":
        assert (plan["peak_rate"], plan["warmup_steps"]) == (pytest.approx(0.00176), 3125)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_recipe_trains_at_its_own_settings_with_a_tiny_model(name: str, store: TokenStore, tmp_path: Path) -> None:
    given = [*TINY, *GIVEN.get(name, [])]
    settings = read_settings(PretrainSettings, file=locate_recipe(name), assignments=given)
    result = pretrain(store, preset_for(name), tmp_path, settings=settings)
    assert isinstance(result, Pretrained)
    assert result.trained.state.step == 5
    assert result.trained.state.skipped == 0


def test_the_paper_recipe_is_the_papers() -> None:
    settings = read_settings(PretrainSettings, file=locate_recipe("paper"))
    assert (settings.train.batch_size, settings.train.steps, settings.data.max_length) == (4096, 125_000, 512)
    assert (settings.optimizer.name, settings.optimizer.lr, settings.optimizer.warmup_steps) == ("lamb", "paper", None)
    assert (settings.data.short_prob, settings.data.mask_prob, settings.data.max_ngram) == (0.1, 0.15, 3)
    assert settings.data.max_predictions == 20
    assert PRESETS[str(settings.start_from)].hidden_dropout_prob == 0.1


def test_assignments_win_over_a_recipe_and_a_recipe_over_the_defaults(store_folder: Path, tmp_path: Path) -> None:
    facts = command(store_folder, tmp_path / "run", "--config", "laptop", *tiny("grow.depth=[]"), "--dry-run")
    settings = facts["settings"]
    assert settings["optimizer"]["name"] == "lamb", "the recipe's, not the default"
    assert settings["train"]["steps"] == 5, "the assignment's, not the recipe's"
    assert settings["grow"]["depth"] == []
    assert settings["train"]["keep"] == 2, "the default's, which nobody touched"


def test_a_recipe_brings_its_model_and_the_option_wins(store_folder: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "own.toml"
    recipe.write_text('start_from = "tiny"\n[train]\nsteps = 2\nbatch_size = 4\n[data]\nmax_length = 64\n')
    command(store_folder, tmp_path / "recipe", "--config", str(recipe))
    assert json.loads((tmp_path / "recipe/run.json").read_text())["identity"]["model"] == "tiny"
    command(store_folder, tmp_path / "option", "--config", str(recipe), "--model", "small")
    assert json.loads((tmp_path / "option/run.json").read_text())["identity"]["model"] == "small"


def test_a_recipe_for_a_new_model_goes_on_from_a_folder_which_decides_its_shape(
    store_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command(store_folder, tmp_path / "first", "--config", "laptop", *tiny("grow.depth=[]"))
    first = str(tmp_path / "first")
    more = [word for one in ("train.steps=2", "train.batch_size=4", "grow.depth=[]") for word in ("--set", one)]
    on = ["--config", "laptop", "--model", first, *more]
    command(store_folder, tmp_path / "second", *on)
    config = json.loads((tmp_path / "second/model/config.json").read_text())
    assert config["embedding_size"] == 16, "the folder's, not the recipe's 64"
    told = f"{first} decides model.embedding_size, model.initializer_range, model_init.positions, model_init.words"
    assert told in caplog.text
    assert command(store_folder, tmp_path / "second", *on)["resumed_from"] == 2, "the same command is the same run"
    command(store_folder, tmp_path / "third", *on, "--set", "model.embedding_size=16")
    for contradiction in ("model.embedding_size=64", "model_init.words=ppmi", "words=counts", "model.embeding_size=3"):
        with pytest.raises(UsageError, match=r"keeps its shape|has its own|did you mean"):
            command(store_folder, tmp_path / "fourth", *on, "--set", contradiction)


def test_a_finished_run_says_so_and_where_its_model_is(store_folder: Path, tmp_path: Path) -> None:
    words = ["pretrain", "--data", str(store_folder), "--out", str(tmp_path / "run"), "--model", "tiny", *tiny()]
    assert "run is finished" not in CliRunner().invoke(app, words, catch_exceptions=False).stdout
    again = CliRunner().invoke(app, words, catch_exceptions=False)
    assert again.exit_code == 0
    assert f"{tmp_path / 'run'}: the run is finished" in again.stdout
    assert f"{tmp_path / 'run' / 'model'}: a model" in again.stdout


def test_a_file_wins_over_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper").mkdir()
    assert locate_recipe("paper") == SHIPPED / "paper.toml", "a folder is no recipe"
    (tmp_path / "laptop").write_text("")
    assert locate_recipe("laptop") == Path("laptop")


def test_an_unknown_recipe_suggests_the_near_one_and_lists_all() -> None:
    with pytest.raises(UsageError, match=rf"did you mean 'paper'\? \(known: {KNOWN}\)"):
        locate_recipe("papr")
    with pytest.raises(UsageError, match=f"neither a file nor a shipped recipe: known: {KNOWN}"):
        locate_recipe("settings/xyz.toml")
    with pytest.raises(UsageError, match="did you mean 'laptop'"):
        locate_recipe("laptop.toml")


def test_the_help_of_pretraining_names_every_shipped_recipe() -> None:
    done = CliRunner().invoke(app, ["pretrain", "--help"], terminal_width=300)
    words = set(done.stdout.replace(",", " ").replace(".", " ").split())
    assert set(shipped_recipes()) <= words
