"""Checkpoints that real TensorFlow wrote, under Google's names (make test-tf).

The graph below is written from the paper and the layout of Google's variables, in plain TensorFlow operations. It
makes the variables, saves them with optimizer slots as Google's trainer does, and computes logits of its own; the
second oracle is transformers' own conversion. Every variable is random, biases and norms too, so that nothing hides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from albert.batch import pack
from albert.cli import app
from albert.errors import ModelError
from albert.interop.convert import read_checkpoint, write_folder
from albert.model import Albert
from albert.model.folder import load_model
from albert.tokenizer import Tokenizer

pytestmark = pytest.mark.tf

GOOGLE: dict[str, Any] = {
    "attention_probs_dropout_prob": 0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0,
    "embedding_size": 16,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_hidden_groups": 1,
    "net_structure_type": 0,
    "gap_size": 0,
    "num_memory_blocks": 0,
    "inner_group_num": 1,
    "down_scale_factor": 1,
    "type_vocab_size": 2,
    "vocab_size": 90,
}
SHAPES = {
    "plain": {},
    "groups": {"num_hidden_layers": 4, "num_hidden_groups": 2},
    "inner groups": {"inner_group_num": 2},
    "no projection": {"embedding_size": 32},
    "relu": {"hidden_act": "relu"},
}
TEXTS = [[2, 10, 20, 30, 4, 50, 3, 60, 70, 80, 3], [2, 11, 12, 3, 13, 3]]
SEGMENTS = [[0] * 7 + [1] * 4, [0] * 4 + [1] * 2]


@pytest.fixture(scope="module")
def v1() -> Any:
    """Return TensorFlow's graph mode, or skip."""
    tensorflow = pytest.importorskip("tensorflow")
    return tensorflow.compat.v1


class Graph:
    """Google's ALBERT in TensorFlow operations; `get` makes a random variable under the current scope."""

    def __init__(self, v1: Any, config: dict[str, Any], seed: int = 0) -> None:
        self.v1, self.config = v1, config
        self.rng = np.random.default_rng(seed)
        width = max(map(len, TEXTS))
        self.ids = v1.constant([text + [0] * (width - len(text)) for text in TEXTS])
        self.segments = v1.constant([row + [0] * (width - len(row)) for row in SEGMENTS])
        self.mask = v1.constant([[1.0] * len(text) + [0.0] * (width - len(text)) for text in TEXTS])

    def get(self, name: str, *shape: int) -> Any:
        value = self.rng.normal(1.0 if name == "gamma" else 0.0, 0.2, shape).astype("float32")
        return self.v1.get_variable(name, initializer=value)

    def dense(self, x: Any, outputs: int, scope: str, *, bias: bool = True) -> Any:
        with self.v1.variable_scope(scope):
            y = self.v1.tensordot(x, self.get("kernel", x.shape[-1], outputs), 1)
            return y + self.get("bias", outputs) if bias else y

    def norm(self, x: Any, scope: str) -> Any:
        with self.v1.variable_scope(scope):
            mean, variance = self.v1.nn.moments(x, [-1], keepdims=True)
            scaled = (x - mean) * self.v1.rsqrt(variance + 1e-12)
            return scaled * self.get("gamma", x.shape[-1]) + self.get("beta", x.shape[-1])

    def act(self, x: Any) -> Any:
        if self.config["hidden_act"] == "relu":
            return self.v1.nn.relu(x)
        return x * 0.5 * (1.0 + self.v1.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * self.v1.pow(x, 3))))

    def attention(self, x: Any) -> Any:
        v1, heads = self.v1, self.config["num_attention_heads"]
        batch, length, hidden = x.shape
        with v1.variable_scope("attention_1"):
            with v1.variable_scope("self"):
                query, key, value = (
                    v1.transpose(
                        v1.reshape(self.dense(x, hidden, name), [batch, length, heads, hidden // heads]), [0, 2, 1, 3]
                    )
                    for name in ("query", "key", "value")
                )
                scores = v1.matmul(query, key, transpose_b=True) / np.sqrt(hidden // heads).astype("float32")
                scores += (1.0 - self.mask)[:, None, None, :] * -10000.0
                mixed = v1.reshape(
                    v1.transpose(v1.matmul(v1.nn.softmax(scores), value), [0, 2, 1, 3]), [batch, length, hidden]
                )
            with v1.variable_scope("output"):
                return self.dense(mixed, hidden, "dense")

    def block(self, x: Any) -> Any:
        v1, hidden = self.v1, self.config["hidden_size"]
        x = self.norm(x + self.attention(x), "LayerNorm")
        with v1.variable_scope("ffn_1"), v1.variable_scope("intermediate"):
            y = self.act(self.dense(x, self.config["intermediate_size"], "dense"))
            with v1.variable_scope("output"):
                y = self.dense(y, hidden, "dense")
        return self.norm(x + y, "LayerNorm_1")

    def encode(self) -> tuple[Any, Any]:
        """Return the last states and the pooled [CLS]."""
        v1, config = self.v1, self.config
        hidden, layers = config["hidden_size"], config["num_hidden_layers"]
        with v1.variable_scope("bert"):
            with v1.variable_scope("embeddings"):
                size = config["embedding_size"]
                self.words = self.get("word_embeddings", config["vocab_size"], size)
                types = self.get("token_type_embeddings", config["type_vocab_size"], size)
                positions = self.get("position_embeddings", config["max_position_embeddings"], size)
                x = v1.gather(self.words, self.ids) + v1.gather(types, self.segments)
                x = self.norm(x + positions[: x.shape[1]], "LayerNorm")
            with v1.variable_scope("encoder"):
                if size != hidden:
                    x = self.dense(x, hidden, "embedding_hidden_mapping_in")
                with v1.variable_scope("transformer", reuse=v1.AUTO_REUSE):
                    for layer in range(layers):
                        with v1.variable_scope(f"group_{layer * config['num_hidden_groups'] // layers}"):
                            for inner in range(config["inner_group_num"]):
                                with v1.variable_scope(f"inner_group_{inner}"):
                                    x = self.block(x)
            with v1.variable_scope("pooler"):
                pooled = v1.tanh(self.dense(x[:, 0], hidden, "dense"))
        return x, pooled

    def pretraining(self) -> dict[str, Any]:
        """Return the logits of masked words (at every place) and of the order."""
        v1, config = self.v1, self.config
        x, pooled = self.encode()
        with v1.variable_scope("cls/predictions"):
            with v1.variable_scope("transform"):
                y = self.norm(self.act(self.dense(x, config["embedding_size"], "dense")), "LayerNorm")
            words = v1.tensordot(y, v1.transpose(self.words), 1) + self.get("output_bias", config["vocab_size"])
        with v1.variable_scope("cls/seq_relationship"):
            weights = self.get("output_weights", 2, config["hidden_size"])
            order = v1.matmul(pooled, weights, transpose_b=True) + self.get("output_bias", 2)
        return {"words": words, "order": order}

    def classification(self, labels: int) -> dict[str, Any]:
        _, pooled = self.encode()
        weights = self.get("output_weights", labels, self.config["hidden_size"])
        return {"classes": self.v1.matmul(pooled, weights, transpose_b=True) + self.get("output_bias", labels)}

    def squad2(self) -> dict[str, Any]:
        """Return the start logits, the end logits given that the answer starts at 1, and answerability."""
        v1, hidden = self.v1, self.config["hidden_size"]
        x, _ = self.encode()
        hidden_places = 1.0 - self.mask
        with v1.variable_scope("start_logits"):
            start = self.dense(x, 1, "dense")[:, :, 0] - 1e30 * hidden_places
        with v1.variable_scope("end_logits"):
            both = v1.concat([x, v1.tile(x[:, 1:2], [1, x.shape[1], 1])], -1)
            y = self.norm(v1.tanh(self.dense(both, hidden, "dense_0")), "LayerNorm")
            end = self.dense(y, 1, "dense_1")[:, :, 0] - 1e30 * hidden_places
        with v1.variable_scope("answer_class"):
            weighted = v1.reduce_sum(v1.nn.softmax(start)[:, :, None] * x, 1)
            y = v1.tanh(self.dense(v1.concat([weighted, x[:, 0]], -1), hidden, "dense_0"))
            answer = self.dense(y, 1, "dense_1", bias=False)[:, 0]
        return {"start": start, "end": end, "answer": answer}

    def add_optimizer(self) -> None:
        """Make what Google's LAMB leaves in a checkpoint."""
        for variable in self.v1.trainable_variables():
            for slot in ("adam_m", "adam_v"):
                name = f"{variable.name.split(':')[0]}/{slot}"
                self.v1.get_variable(name, initializer=np.ones(variable.shape, "float32"), trainable=False)
        self.v1.get_variable("global_step", initializer=np.int64(125_000), trainable=False)


@contextmanager
def session(v1: Any) -> Iterator[Any]:
    with v1.Graph().as_default(), v1.Session() as running:
        yield running


def save_checkpoint(v1: Any, folder: Path, config: dict[str, Any], kind: str = "pretraining", **options: Any) -> Any:
    """Write a checkpoint as in the released archives, and give the graph's own logits."""
    folder.mkdir()
    (folder / "albert_config.json").write_text(json.dumps(config))
    with session(v1) as running:
        graph = Graph(v1, config)
        outputs = getattr(graph, kind)(**options)
        graph.add_optimizer()
        running.run(v1.global_variables_initializer())
        v1.train.Saver().save(running, str(folder / "model.ckpt-best"))
        return running.run(outputs)


def our_outputs(model: Albert) -> dict[str, Any]:
    """Run our model on the texts; tokens of all texts end to end."""
    batch = pack(TEXTS, SEGMENTS)
    with torch.no_grad():
        encoded = model(batch)
        words = model.mlm_logits(encoded, torch.arange(len(batch.token_ids)))
        return {"words": words.numpy(), "order": model.heads["order"](encoded.pooled).numpy()}


def without_padding(rows: Any) -> Any:
    return np.concatenate([row[: len(text)] for row, text in zip(rows, TEXTS, strict=True)])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_checkpoint_computes_what_tensorflow_computes(v1: Any, tmp_path: Path, spiece: Path, shape: str) -> None:
    source = tmp_path / "albert"
    expected = save_checkpoint(v1, source, GOOGLE | SHAPES[shape])
    (source / "30k-clean.model").write_bytes(spiece.read_bytes())
    converted = read_checkpoint(source)
    assert converted.notes == ()
    write_folder(converted, tmp_path / "out")
    model = load_model(tmp_path / "out").model
    ours = our_outputs(model)
    assert np.abs(ours["words"] - without_padding(expected["words"])).max() < 2e-5
    assert np.abs(ours["order"] - expected["order"]).max() < 2e-5
    assert model.config.hidden_act == ("relu" if shape == "relu" else "gelu_new"), "Google's gelu is the tanh form"
    assert Tokenizer.load(tmp_path / "out").vocab_size == 90


@pytest.mark.parametrize("shape", ["plain", "relu"])
def test_transformers_own_conversion_agrees(v1: Any, tmp_path: Path, shape: str) -> None:
    modeling = pytest.importorskip("transformers.models.albert.modeling_albert")
    convert = getattr(modeling, "load_tf_weights_in_albert", None)
    if convert is None:
        pytest.skip("this transformers can't read TensorFlow checkpoints any more")
    from transformers import AlbertConfig, AlbertForPreTraining

    save_checkpoint(v1, tmp_path / "albert", GOOGLE | SHAPES[shape])
    values = GOOGLE | SHAPES[shape]
    values["hidden_act"] = {"gelu": "gelu_new"}.get(values["hidden_act"], values["hidden_act"])
    oracle = AlbertForPreTraining(AlbertConfig(**values)).eval()
    convert(oracle, oracle.config, str(tmp_path / "albert" / "model.ckpt-best"))
    ours = our_outputs(read_checkpoint(tmp_path / "albert").model)
    with torch.no_grad():
        theirs = [
            oracle(torch.tensor([text]), token_type_ids=torch.tensor([row]))
            for text, row in zip(TEXTS, SEGMENTS, strict=True)
        ]
    words = torch.cat([output.prediction_logits[0] for output in theirs]).numpy()
    order = torch.cat([output.sop_logits for output in theirs]).numpy()
    assert np.abs(ours["words"] - words).max() < 2e-5
    assert np.abs(ours["order"] - order).max() < 2e-5


def test_a_hub_module_is_read_from_its_variables_and_assets(v1: Any, tmp_path: Path, spiece: Path) -> None:
    module = tmp_path / "module"
    with session(v1) as running:
        with v1.variable_scope("module"):
            graph = Graph(v1, GOOGLE)
            outputs = graph.pretraining()
        running.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(running, str(module), inputs={"ids": graph.ids}, outputs=outputs)
        expected = running.run(outputs)
    (module / "assets").mkdir(exist_ok=True)
    (module / "assets" / "albert_config.json").write_text(json.dumps(GOOGLE))
    (module / "assets" / "30k-clean.model").write_bytes(spiece.read_bytes())
    result = CliRunner().invoke(app, ["convert", str(module), "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.exception
    facts = json.loads(result.stdout)
    assert (facts["kind"], facts["heads"], facts["notes"]) == ("tensorflow", ["mlm", "order"], [])
    ours = our_outputs(load_model(tmp_path / "out").model)
    assert np.abs(ours["words"] - without_padding(expected["words"])).max() < 2e-5
    assert (tmp_path / "out" / "spiece.model").read_bytes() == spiece.read_bytes()


@pytest.mark.parametrize("labels", [1, 3])
def test_a_fine_tuned_classifier_keeps_its_labels(v1: Any, tmp_path: Path, labels: int) -> None:
    expected = save_checkpoint(v1, tmp_path / "albert", GOOGLE, "classification", labels=labels)
    converted = read_checkpoint(tmp_path / "albert" / "model.ckpt-best.index")
    model = converted.model
    assert len(model.config.labels) == labels
    with torch.no_grad():
        logits = model.heads["classifier"](model(pack(TEXTS, SEGMENTS)).pooled)
    assert np.abs(logits.numpy() - expected["classes"]).max() < 2e-5
    assert any("RACE" in note for note in converted.notes) == (labels == 1)


def test_the_head_for_unanswerable_questions_is_google_s(v1: Any, tmp_path: Path) -> None:
    from albert.model import Packed

    expected = save_checkpoint(v1, tmp_path / "albert", GOOGLE, "squad2")
    model = read_checkpoint(tmp_path / "albert").model
    packed = Packed.from_batch(pack(TEXTS, SEGMENTS), torch.device("cpu"))
    allowed = torch.ones(sum(map(len, TEXTS)), dtype=torch.bool)
    with torch.no_grad():
        states = model(packed).states
        scores = model.heads["conditional_span"](states, packed, allowed=allowed, true_starts=torch.tensor([1, 1]))
    ours = {"start": scores.start_logits, "end": scores.end_logits, "answer": scores.no_answer}
    for name, logits in ours.items():
        real = expected[name] > -1e29
        assert np.abs(np.where(real, logits.numpy() - expected[name], 0)).max() < 2e-5, name


def test_everything_that_does_not_fit_is_in_one_error(v1: Any, tmp_path: Path) -> None:
    source = tmp_path / "albert"
    save_checkpoint(v1, source, GOOGLE)
    wrong = GOOGLE | {"embedding_size": 32, "intermediate_size": 64, "num_hidden_groups": 3}
    (source / "albert_config.json").write_text(json.dumps(wrong))
    with pytest.raises(ModelError) as caught:
        read_checkpoint(source)
    layer = "bert/encoder/transformer/group_{}/inner_group_0"
    for part in (
        "unexpected bert/encoder/embedding_hidden_mapping_in/kernel [16, 32]",
        f"missing {layer.format(2)}/attention_1/self/query/kernel [32, 32]",
        f"{layer.format(0)}/ffn_1/intermediate/dense/kernel is [32, 48], should be [32, 64]",
        "bert/embeddings/word_embeddings is [90, 16], should be [90, 32]",
    ):
        assert part in str(caught.value)
    assert "adam" not in str(caught.value)


def test_a_damaged_checkpoint_is_refused(v1: Any, tmp_path: Path) -> None:
    source = tmp_path / "albert"
    save_checkpoint(v1, source, GOOGLE)
    data = next(source.glob("*.data-*"))
    whole = data.read_bytes()
    data.write_bytes(whole[:100])
    with pytest.raises(ModelError, match="TensorFlow can't read this checkpoint"):
        read_checkpoint(source)
    data.write_bytes(whole)
    (source / "model.ckpt-best.index").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="TensorFlow can't read this checkpoint"):
        read_checkpoint(source)


def test_the_head_count_of_xlarge_is_said(v1: Any, tmp_path: Path) -> None:
    shape = {"hidden_size": 2048, "intermediate_size": 8, "num_hidden_layers": 24, "num_attention_heads": 16}
    save_checkpoint(v1, tmp_path / "albert", GOOGLE | shape)
    notes = read_checkpoint(tmp_path / "albert").notes
    assert any(note.startswith("num_attention_heads=16: published configurations") for note in notes)
