"""Pre-training in this process: it learns, resumes exactly, grows, refuses, and survives bad losses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from albert.data.store import TokenStore
from albert.data.word_vectors import WordVectors, ppmi_word_vectors
from albert.errors import AlbertError, DataError, UsageError
from albert.hardware import advise_precision
from albert.model import AlbertConfig, new_model
from albert.model.folder import load_model, save_model
from albert.model.locate import locate
from albert.optim.table import OPTIMIZERS
from albert.pretrain import Plan, Pretrained, job, pretrain
from albert.pretrain.job import PretrainJob, count_micro_batches, phases
from albert.pretrain.settings import PretrainSettings
from albert.pretrain.start import start_model
from albert.settings import read_settings
from albert.tokenizer import Tokenizer
from albert.train.checkpoint import newest_intact
from albert.train.loop import Progress
from albert.train.world import World

SMALL = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.num_attention_heads": 2, "model.intermediate_size": 64,
    "model.num_hidden_layers": 2, "data.max_length": 64, "train.steps": 12, "train.batch_size": 8, "train.log_every": 2,
    "train.save_every": 4, "train.eval_every": 100, "optimizer.warmup_steps": 2, "optimizer.lr": 0.01,
}  # fmt: skip

TIMES = ("tokens_per_second", "seconds")


def settings(**changes: Any) -> PretrainSettings:
    values = SMALL | {name.replace("__", "."): value for name, value in changes.items()}
    return read_settings(PretrainSettings, defaults=values)


def run(store: TokenStore, out: Path, **changes: Any) -> Pretrained:
    result = pretrain(store, "tiny", out, settings=settings(**changes))
    assert isinstance(result, Pretrained)
    return result


def final(out: Path) -> dict[str, torch.Tensor]:
    path = newest_intact(out / "checkpoints")
    assert path is not None
    return load_file(path / "weights.safetensors") | load_file(path / "optimizer.safetensors")


def same(first: Path, second: Path) -> bool:
    a, b = final(first), final(second)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def stop_at(step: int) -> Callable[[Progress], None]:
    def observe(progress: Progress) -> None:
        if progress.step >= step:
            raise KeyboardInterrupt

    return observe


def test_it_learns_and_writes_a_run_folder(store: TokenStore, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = pretrain(store, "tiny", out, settings=settings(train__steps=120, train__eval_every=120), valid=store)
    assert isinstance(result, Pretrained)
    losses = [line["mlm_loss"] for line in metrics(out) if "mlm_loss" in line]
    # First written as < 0.8 x the first loss, which 120 steps missed (3.54 from 4.24). The frequencies of single words
    # are enough to pass this: it shows that training moves the model, not that it learns context.
    assert losses[-1] < losses[0] - 0.5
    assert set(result.trained.last_evaluation) == {
        "valid_mlm_loss", "valid_mlm_accuracy", "valid_sop_accuracy", "valid_nsp_accuracy",
    }  # fmt: skip
    record = json.loads((out / "run.json").read_text())
    assert record["identity"]["store"] == store.fingerprint
    assert record["versions"]["torch"] == torch.__version__
    model = load_model(out / "model").model
    assert model.config.vocab_size == store.tokenizer.vocab_size
    assert (out / "model" / "spiece.model").exists()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("changes", [{}, {"train__micro_batch": 2, "model__hidden_dropout_prob": 0.1}])
def test_a_resumed_run_is_the_uninterrupted_run_bit_for_bit(
    optimizer: str, changes: dict[str, Any], store: TokenStore, tmp_path: Path
) -> None:
    changes = changes | {"optimizer__name": optimizer}
    run(store, tmp_path / "whole", **changes)
    for step in (6, 10):
        with pytest.raises(KeyboardInterrupt):
            pretrain(store, "tiny", tmp_path / "cut", settings=settings(**changes), observe=stop_at(step))
    assert run(store, tmp_path / "cut", **changes).trained.resumed_from == 8
    assert same(tmp_path / "whole", tmp_path / "cut")
    timeless = [
        [{key: value for key, value in line.items() if key not in TIMES} for line in metrics(tmp_path / name)]
        for name in ("whole", "cut")
    ]
    assert timeless[0] == timeless[1], "a resumed run reads like an uninterrupted one"


def test_running_a_finished_command_again_changes_nothing(store: TokenStore, tmp_path: Path) -> None:
    run(store, tmp_path / "run")
    before = metrics(tmp_path / "run"), final(tmp_path / "run")
    model = tmp_path / "run" / "model"
    (model / "notes.txt").touch()  # would be lost if the folder were written again
    assert run(store, tmp_path / "run").trained.resumed_from == 12
    assert metrics(tmp_path / "run") == before[0]
    assert (model / "notes.txt").exists()
    shutil.rmtree(model)
    assert run(store, tmp_path / "run").was_finished
    assert load_model(model).model.config.hidden_size == 32, "one that is gone is written again"


def test_accumulation_changes_the_losses_by_rounding_only(store: TokenStore, tmp_path: Path) -> None:
    run(store, tmp_path / "one", train__precision="fp32")
    run(store, tmp_path / "four", train__precision="fp32", train__micro_batch=2)
    for first, second in zip(metrics(tmp_path / "one"), metrics(tmp_path / "four"), strict=True):
        assert first["loss"] == pytest.approx(second["loss"], abs=1e-4)


def test_another_configuration_on_the_same_folder_is_refused_by_name(store: TokenStore, tmp_path: Path) -> None:
    run(store, tmp_path / "run")
    with pytest.raises(UsageError, match=r"settings\.train\.seed was 0, is 3"):
        run(store, tmp_path / "run", train__seed=3)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").touch()
    with pytest.raises(UsageError, match="not empty"):
        run(store, tmp_path / "other")


def rewrite_record(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Make run.json say what an earlier version would have written."""
    record = json.loads((out / "run.json").read_text())
    change(record["identity"]["settings"])
    (out / "run.json").write_text(json.dumps(record))


def test_a_run_begun_before_a_setting_existed_resumes_with_its_default(store: TokenStore, tmp_path: Path) -> None:
    def forget(settings: dict[str, Any]) -> None:
        del settings["model_init"], settings["data"]["overlap"], settings["train"]["timeout_minutes"]

    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "run", settings=settings(), observe=stop_at(6))
    rewrite_record(tmp_path / "run", forget)
    with pytest.raises(UsageError, match=r"settings\.data\.overlap was 0\.0, is 0\.5"):
        run(store, tmp_path / "run", data__overlap=0.5)
    assert run(store, tmp_path / "run").trained.resumed_from == 4
    record = json.loads((tmp_path / "run" / "run.json").read_text())["identity"]["settings"]
    assert record["data"]["overlap"] == 0.0, "the record says what is in force"


def test_a_run_begun_under_old_names_resumes_under_the_new(store: TokenStore, tmp_path: Path) -> None:
    def old_names(settings: dict[str, Any]) -> None:
        assert settings.pop("model_init") == {"positions": "sinusoidal", "words": "ppmi"}
        settings |= {"positions": "waves", "words": "counts"}

    changes = {"model_init__positions": "sinusoidal", "model_init__words": "ppmi"}
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "run", settings=settings(**changes), observe=stop_at(6))
    rewrite_record(tmp_path / "run", old_names)
    with pytest.raises(UsageError, match=r"settings\.model_init\.words was 'ppmi', is 'random'"):
        run(store, tmp_path / "run", model_init__positions="sinusoidal")
    assert run(store, tmp_path / "run", **changes).trained.resumed_from == 4
    assert run(store, tmp_path / "run", positions="waves", words="counts").trained.resumed_from == 12


def test_a_resumed_run_may_change_what_its_result_does_not_depend_on(store: TokenStore, tmp_path: Path) -> None:
    later = {
        "train__save_every": 5, "train__keep": 1, "train__log_every": 3, "train__eval_every": 6,
        "train__timeout_minutes": 3.0, "train__on_bad_loss": "skip", "train__checkpointing": True,
        "train__precision": advise_precision("cpu"),  # what `auto` was
    }  # fmt: skip
    dropout = {"model__hidden_dropout_prob": 0.1}
    run(store, tmp_path / "whole", **dropout)
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "cut", settings=settings(**dropout), observe=stop_at(6))
    assert run(store, tmp_path / "cut", **dropout, **later).trained.resumed_from == 4
    assert same(tmp_path / "whole", tmp_path / "cut")
    record = json.loads((tmp_path / "cut" / "run.json").read_text())["identity"]["settings"]
    assert record["train"]["save_every"] == 5, "the record says what is in force"


def test_a_run_with_a_late_decay_may_be_ended_sooner_or_made_longer(store: TokenStore, tmp_path: Path) -> None:
    late = {"optimizer__decay": 0.5}
    run(store, tmp_path / "whole", **late)
    for name, steps in (("longer", 8), ("shorter", 40)):
        planned = settings(**late, train__steps=steps)
        with pytest.raises(KeyboardInterrupt):  # step 4 is saved
            pretrain(store, "tiny", tmp_path / name, settings=planned, observe=stop_at(6))
        assert run(store, tmp_path / name, **late).trained.resumed_from == 4
        assert same(tmp_path / "whole", tmp_path / name)
    with pytest.raises(UsageError, match="has done 12 steps already"):
        run(store, tmp_path / "whole", **late, train__steps=11)
    run(store, tmp_path / "ended", **late)  # its rate has fallen
    for steps in (24, 13):
        with pytest.raises(UsageError, match=r"train\.steps can change from 12 to .* only before that"):
            run(store, tmp_path / "ended", **late, train__steps=steps)
    assert run(store, tmp_path / "ended", **late).was_finished


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimizer__decay": 0.5, "optimizer__lr": "auto"},  # depends on the steps
        {"optimizer__decay": 0.5, "optimizer__warmup_steps": None},  # a share of them
        {"optimizer__decay": 0.5, "dropout_until": 0.5},
        {"optimizer__decay": 0.5, "grow__length": [[0.0, 32], [0.5, 64]]},
    ],
)
def test_other_runs_keep_their_number_of_steps(changes: dict[str, Any], store: TokenStore, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "run", settings=settings(**changes), observe=stop_at(4))
    with pytest.raises(UsageError, match=r"another configuration: settings\.train\.steps was 12, is 20"):
        run(store, tmp_path / "run", **changes, train__steps=20)


def test_a_damaged_newest_checkpoint_is_passed_over(
    store: TokenStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(store, tmp_path / "whole")
    run(store, tmp_path / "hurt")
    newest = newest_intact(tmp_path / "hurt" / "checkpoints")
    assert newest is not None
    weights = newest / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    assert run(store, tmp_path / "hurt").trained.resumed_from == 8
    assert "weights.safetensors is damaged" in caplog.text
    assert same(tmp_path / "whole", tmp_path / "hurt")


def test_words_that_start_from_ppmi_begin_at_the_frequencies_and_are_not_counted_again(
    store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(store: TokenStore, size: int) -> WordVectors:
        counted.append(size)
        return ppmi_word_vectors(store, size)

    monkeypatch.setattr("albert.pretrain.start.ppmi_word_vectors", count)
    run(store, tmp_path / "noise")
    run(store, tmp_path / "ppmi", model_init__words="ppmi")
    assert metrics(tmp_path / "ppmi")[0]["mlm_loss"] < metrics(tmp_path / "noise")[0]["mlm_loss"] - 0.3
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "stopped", settings=settings(model_init__words="ppmi"), observe=stop_at(6))
    run(store, tmp_path / "stopped", model_init__words="ppmi")
    assert same(tmp_path / "ppmi", tmp_path / "stopped")
    assert counted == [16, 16]


def test_depth_and_length_grow_and_resume_across_their_stages(store: TokenStore, tmp_path: Path) -> None:
    changes = {
        "data__max_length": 128,
        "grow__depth": [(0.0, 1), (0.5, 2)],
        "grow__length": [(0.0, 64), (0.7, 128)],
    }
    assert [(phase.first, phase.end, phase.length, phase.batch_size) for phase in phases(settings(**changes))] == [
        (0, 8, 64, 16),
        (8, 12, 128, 8),
    ]
    run(store, tmp_path / "whole", **changes)
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "cut", settings=settings(**changes), observe=stop_at(10))
    run(store, tmp_path / "cut", **changes)
    assert same(tmp_path / "whole", tmp_path / "cut")
    constant = changes | {"grow__depth": []}
    run(store, tmp_path / "deep", **constant)
    assert not same(tmp_path / "whole", tmp_path / "deep")


def test_a_length_that_comes_again_goes_on_in_its_text(store: TokenStore) -> None:
    changes = settings(grow__length=[(0.0, 64), (0.25, 32), (0.5, 64), (0.75, 32), (0.9, 64)])
    config = AlbertConfig(
        vocab_size=store.tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
    )
    model = new_model(config, ("mlm", "order"))

    def texts(asked: PretrainSettings, first: int = 0) -> list[bytes]:
        world = World(0, 1, torch.device("cpu"))
        own = PretrainJob(model, store, asked, world=world, valid=None)
        return [micro.token_ids.tobytes() for [micro] in own.batches(first)]

    steps = texts(changes)
    assert len(set(steps)) == len(steps) == 12
    assert steps[:3] + steps[6:9] + steps[11:] == texts(settings())[:7]
    for first in (4, 7, 11):
        assert texts(changes, first) == steps[first:]


def test_dropout_can_be_removed_at_the_end_and_is_after_a_resume_too(store: TokenStore, tmp_path: Path) -> None:
    drop = {"model__hidden_dropout_prob": 0.5, "model__attention_probs_dropout_prob": 0.5, "train__log_every": 1}
    run(store, tmp_path / "kept", **drop)
    run(store, tmp_path / "removed", **drop, dropout_until=0.5)
    kept, removed = ([line["loss"] for line in metrics(tmp_path / name)] for name in ("kept", "removed"))
    assert kept[:6] == removed[:6]
    assert all(one != other for one, other in zip(kept[6:], removed[6:], strict=True))
    part = settings(**drop, dropout_until=0.5)
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "resumed", settings=part, observe=stop_at(9))
    pretrain(store, "tiny", tmp_path / "resumed", settings=part)
    assert same(tmp_path / "removed", tmp_path / "resumed")


def test_a_bad_loss_stops_the_run_and_leaves_the_checkpoint(
    store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_loss = job.cross_entropy

    def poisoned(logits: torch.Tensor, labels: torch.Tensor, *, count: float | None = None) -> torch.Tensor:
        calls.append(1)
        return true_loss(logits, labels, count=count) * (float("nan") if len(calls) == 7 else 1.0)

    calls: list[int] = []
    monkeypatch.setattr(job, "cross_entropy", poisoned)
    with pytest.raises(AlbertError, match=r"step 6: the loss is nan: lower optimizer\.lr"):
        run(store, tmp_path / "stop")
    newest = newest_intact(tmp_path / "stop" / "checkpoints")
    assert newest is not None
    assert newest.name == "step-00000004"
    calls.clear()
    result = run(store, tmp_path / "skip", train__on_bad_loss="skip")
    assert result.trained.state.skipped == 1
    assert all(torch.isfinite(tensor).all() for tensor in final(tmp_path / "skip").values())


def test_objectives_without_order_train_too(store: TokenStore, tmp_path: Path) -> None:
    run(store, tmp_path / "none", data__objective="none")
    assert "order_loss" not in metrics(tmp_path / "none")[-1]
    run(store, tmp_path / "nsp", data__objective="nsp")
    assert metrics(tmp_path / "nsp")[-1]["order_loss"] > 0


def test_the_loss_of_order_weighs_what_it_is_told_to(store: TokenStore, tmp_path: Path) -> None:
    for weight in (1, 3):
        run(store, tmp_path / str(weight), order_weight=weight, train__steps=1, train__log_every=1)
    once, thrice = (metrics(tmp_path / str(weight))[0] for weight in (1, 3))
    assert thrice["order_loss"] == once["order_loss"] > 0.1
    assert thrice["loss"] - once["loss"] == pytest.approx(2 * once["order_loss"], rel=1e-4)


def test_a_dry_run_tells_the_plan_and_writes_nothing(store: TokenStore, tmp_path: Path) -> None:
    plan = pretrain(store, "tiny", tmp_path / "run", settings=settings(), dry_run=True)
    assert isinstance(plan, Plan)
    assert plan.tokens_per_step == 8 * 64
    assert plan.warmup_steps == 2
    assert plan.epochs > 0
    assert not (tmp_path / "run").exists()


def test_micro_batches_divide_the_batch_or_are_refused_with_the_sizes_that_fit() -> None:
    assert count_micro_batches(settings(train__micro_batch=2), 8, 64, processes=2) == 2
    with pytest.raises(UsageError, match="batch_size=96 is not a multiple of micro_batch=64: use 64 or 128"):
        count_micro_batches(settings(train__micro_batch=64), 96, 64, processes=1)
    with pytest.raises(UsageError, match="not a multiple of the 3 processes"):
        count_micro_batches(settings(), 8, 64, processes=3)
    assert count_micro_batches(settings(), 512, 512, processes=1) == 16
    with pytest.raises(UsageError, match=r"grow\.length has 48, where a step has 85.*divide data\.max_length=64"):
        count_micro_batches(settings(train__micro_batch=8), 85, 48, processes=1)


def test_a_folder_with_the_name_of_a_preset_does_not_stand_in_its_way(
    store: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny" / "model").mkdir(parents=True)
    (tmp_path / "tiny" / "model" / "config.json").write_text("{}")
    assert start_model("tiny", store, settings()).config.hidden_size == 32


def test_training_goes_on_from_a_folder_at_another_depth(store: TokenStore, tmp_path: Path) -> None:
    run(store, tmp_path / "first")
    start = read_settings(
        PretrainSettings,
        defaults={name: value for name, value in SMALL.items() if not name.startswith("model.")}
        | {"model.num_hidden_layers": 5},
    )
    pretrain(store, str(tmp_path / "first" / "model"), tmp_path / "second", settings=start)
    assert load_model(tmp_path / "second" / "model").model.config.num_hidden_layers == 5
    fixed = read_settings(PretrainSettings, defaults={"model.hidden_size": 64})
    with pytest.raises(UsageError, match=r"model\.hidden_size=64: .* has 32 and keeps its shape"):
        pretrain(store, str(tmp_path / "first" / "model"), tmp_path / "third", settings=fixed)


def test_training_goes_on_with_another_vocabulary(
    store: TokenStore, store_of_other_pieces: TokenStore, tmp_path: Path
) -> None:
    run(store, tmp_path / "first")
    plain = read_settings(
        PretrainSettings, defaults={name: value for name, value in SMALL.items() if not name.startswith("model.")}
    )
    model = str(tmp_path / "first" / "model")
    pretrain(store_of_other_pieces, model, tmp_path / "second", settings=plain)
    assert (
        load_model(tmp_path / "second" / "model").model.config.vocab_size == store_of_other_pieces.tokenizer.vocab_size
    )
    fresh = pretrain(store_of_other_pieces, "tiny", tmp_path / "fresh", settings=settings())
    assert isinstance(fresh, Pretrained)
    first = [metrics(tmp_path / name)[0]["mlm_loss"] for name in ("second", "fresh")]
    assert first[0] < first[1], "what was learnt with the old pieces helps with the new ones"


def test_half_precision_has_nearly_the_losses_of_full_precision(store: TokenStore, tmp_path: Path) -> None:
    """On a CPU, which is all there is here: bf16 and fp16 on a GPU are untested."""
    run(store, tmp_path / "fp32", train__precision="fp32", model__hidden_dropout_prob=0.1)
    run(store, tmp_path / "bf16", train__precision="bf16", model__hidden_dropout_prob=0.1)
    full, half = ([line["loss"] for line in metrics(tmp_path / name)] for name in ("fp32", "bf16"))
    assert half == pytest.approx(full, abs=0.05)
    assert half != full, "bf16 was not used"
    assert all(tensor.dtype == torch.float32 for tensor in final(tmp_path / "bf16").values()), "weights stay in fp32"


def test_the_scale_of_fp16_and_its_age_are_resumed(store: TokenStore, tmp_path: Path) -> None:
    half = settings(train__precision="fp16")
    with pytest.raises(KeyboardInterrupt):
        pretrain(store, "tiny", tmp_path / "run", settings=half, observe=stop_at(8))
    pretrain(store, "tiny", tmp_path / "run", settings=half)
    path = newest_intact(tmp_path / "run" / "checkpoints")
    assert path is not None
    state = json.loads((path / "state.json").read_text())
    assert state["scale"] > 1
    assert 8 < state["scale_steps"] <= 12, "counted on over the resume"


def test_a_held_out_store_of_another_tokenizer_is_refused(store: TokenStore, tmp_path: Path, real_data: Path) -> None:
    from albert.data.store import write_store
    from albert.tokenizer import Tokenizer

    other = write_store(tmp_path / "o", [[[5, 6], [7]]], tokenizer=Tokenizer.load(real_data / "vocab/spiece.model"))
    with pytest.raises(DataError, match="tokenizer"):
        pretrain(store, "tiny", tmp_path / "run", settings=settings(), valid=other)


def test_a_depth_that_would_never_be_trained_is_refused(store: TokenStore, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"grow.depth ends with 3, but the model has 2 layers.*num_hidden_layers=3"):
        run(store, tmp_path / "run", grow__depth=[(0.0, 1), (0.5, 3)])
    assert not (tmp_path / "run").exists()


def test_a_folder_with_tokenizer_json_alone_has_a_tokenizer(store: TokenStore, tmp_path: Path) -> None:
    """As transformers writes it: its pieces are carried over to the store's vocabulary, not taken for them."""
    other = Tokenizer.load(locate("tiny-en"))
    config = AlbertConfig(
        vocab_size=other.vocab_size, embedding_size=16, hidden_size=32, num_attention_heads=2, intermediate_size=64,
        num_hidden_layers=2,
    )  # fmt: skip
    model = new_model(config, ("mlm", "order"), seed=1)
    save_model(model, tmp_path / "other", tokenizer=other)
    (tmp_path / "other" / "spiece.model").unlink()
    before = model.encoder.embeddings.word.weight
    started = start_model(str(tmp_path / "other"), store, read_settings(PretrainSettings))
    after = started.encoder.embeddings.word.weight
    assert started.config.vocab_size == store.tokenizer.vocab_size
    shared = next(piece for piece in store.tokenizer.pieces[5:] if piece in other.pieces)
    here, there = store.tokenizer.pieces.index(shared), other.pieces.index(shared)
    assert torch.equal(after[here], before[there])
    (tmp_path / "other" / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match="16,000 pieces and no tokenizer, the store has"):
        start_model(str(tmp_path / "other"), store, read_settings(PretrainSettings))
