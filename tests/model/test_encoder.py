"""The encoder: sharing, depth, packing, dropout, precision, checkpointing, compilation."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch

from albert.batch import Batch, pack
from albert.errors import DataError, UsageError
from albert.model import Albert, AlbertConfig, Packed, new_model
from albert.model.albert import WORD_SIZE, init_sinusoidal_positions, init_words
from albert.model.encoder import Encoder, LayerNorm
from albert.model.losses import cross_entropy
from albert.model.packing import WHOLE_LENGTH, WHOLE_TOKENS, attend

SMALL: dict[str, Any] = {
    "vocab_size": 300, "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4,
    "intermediate_size": 64,
}  # fmt: skip


def batch_of(lengths: list[int], seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    return pack([rng.integers(5, 300, n) for n in lengths], [(np.arange(n) > n // 2).astype(int) for n in lengths])


def model_of(heads: tuple[str, ...] = (), **changes: Any) -> Albert:
    model = new_model(AlbertConfig(**(SMALL | changes)), heads, seed=1)
    with torch.no_grad():
        for parameter in model.parameters():  # larger weights, so that differences show
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(5)) * 0.1)
    return model


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
def test_a_shared_block_is_one_module_called_at_every_depth(sharing: str) -> None:
    encoder = model_of(sharing=sharing).encoder
    attention, ffn = (len({id(step[i]) for step in encoder.steps()}) for i in (0, 1))
    expected = {"all": (1, 1), "attention": (1, 4), "ffn": (4, 1), "none": (4, 4)}
    assert (attention, ffn) == expected[sharing]
    assert len(encoder.steps()) == 4


@pytest.mark.parametrize(("layers", "groups", "inner"), [(6, 3, 1), (7, 3, 1), (5, 4, 1), (4, 2, 3)])
def test_groups_are_contiguous_runs(layers: int, groups: int, inner: int) -> None:
    encoder = model_of(num_hidden_layers=layers, num_hidden_groups=groups, inner_group_num=inner).encoder
    blocks = list(encoder.attention)
    used = [blocks.index(attention) for attention, *_ in encoder.steps()]
    assert used == [layer * groups // layers * inner + i for layer in range(layers) for i in range(inner)]


def test_the_sum_over_depth_is_the_gradient_of_a_shared_block() -> None:
    """A shared model and an unshared copy of it with equal weights: the shared gradient is the copies' sum."""
    shared = model_of()
    unshared = new_model(AlbertConfig(**SMALL, sharing="none"))
    with torch.no_grad():
        for name, parameter in unshared.named_parameters():
            parts = name.split(".")
            if parts[1] in ("attention", "ffn"):
                parts[2] = "0"
            parameter.copy_(shared.get_parameter(".".join(parts)))
    batch = batch_of([5, 9])
    for model in (shared, unshared):
        model(batch).pooled.square().sum().backward()
    total = sum(unshared.get_parameter(f"encoder.ffn.{i}.up.weight").grad for i in range(4))
    assert torch.allclose(shared.get_parameter("encoder.ffn.0.up.weight").grad, total, atol=1e-5)


def test_an_all_shared_model_runs_at_any_depth_and_returns_every_layer() -> None:
    model, batch = model_of(), batch_of([5, 9, 30])
    with torch.no_grad():
        deep = model(batch, depth=9, all_layers=True)
        assert len(deep.layers) == 9
        for depth in (1, 4, 9):
            assert torch.equal(model(batch, depth=depth).states, deep.layers[depth - 1])
        assert torch.equal(model(batch).states, deep.layers[3])


@pytest.mark.parametrize("changes", [{"sharing": "attention"}, {"sharing": "none"}, {"num_hidden_groups": 2}])
def test_another_depth_is_refused_when_layers_differ(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="depth=3"):
        model_of(**changes)(batch_of([4]), depth=3)
    assert model_of(**changes)(batch_of([4]), depth=4).states.shape == (4, 32)


def test_depth_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        model_of()(batch_of([4]), depth=0)


def test_a_text_beyond_the_positions_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="513 tokens"):
        model_of()(batch_of([3, 513]))


@pytest.mark.parametrize("padded", [False, True])
def test_results_do_not_depend_on_what_else_is_in_the_batch(padded: bool) -> None:
    model = model_of(("mlm", "classifier"))
    batch = batch_of([2, 512, 33, 7, 120])
    with torch.no_grad():
        together = model(Packed.from_batch(batch, padded=padded))
        for i, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
            part = slice(start, start + length)
            alone = model(Batch(batch.token_ids[part], batch.segment_ids[part], batch.lengths[i : i + 1]))
            assert (together.states[part] - alone.states).abs().max() <= 1e-5
            assert together.pooled is not None
            assert (together.pooled[i] - alone.pooled[0]).abs().max() <= 1e-5


def test_padded_attention_and_attention_text_by_text_agree_in_value_and_gradient() -> None:
    batch = batch_of([2, 40, 33, 7])
    results = []
    for padded in (False, True):
        model = model_of()
        encoded = model(Packed.from_batch(batch, padded=padded))
        encoded.states.square().sum().backward()
        results.append((encoded.states.detach(), {n: p.grad for n, p in model.named_parameters()}))
    (first, first_grads), (second, second_grads) = results
    assert (first - second).abs().max() <= 1e-5
    for name, gradient in first_grads.items():
        if gradient is not None and not name.endswith("key.bias"):
            assert (gradient - second_grads[name]).norm() <= 1e-4 * gradient.norm() + 1e-6, name


@pytest.mark.parametrize("sharing", ["all", "attention", "none"])
def test_the_parts_by_themselves_are_the_whole(sharing: str) -> None:
    encoder, packed = model_of(sharing=sharing).encoder, Packed.from_batch(batch_of([5, 9, 30]))
    with torch.no_grad():
        x = encoder.embed(packed)
        for step in encoder.steps():
            x = encoder.layer(x, packed, *step)
        whole = encoder(packed)
        assert torch.equal(x, whole.states)
        assert torch.equal(encoder.pool(x, packed), whole.pooled)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("staying", [[0, 2, 4], [3, 1], [2]])
def test_texts_can_leave_the_batch_between_two_layers(staying: list[int], padded: bool) -> None:
    encoder, batch = model_of().encoder, batch_of([2, 40, 33, 7, 33])
    packed = Packed.from_batch(batch, padded=padded)
    with torch.no_grad():
        whole = encoder(packed)
        x = encoder.embed(packed)
        for number, step in enumerate(encoder.steps()):
            if number == 2:
                packed, tokens = packed.restrict(staying)
                x = x.index_select(0, tokens)
            x = encoder.layer(x, packed, *step)
        assert packed.lengths == tuple(batch.lengths[staying].tolist())
        assert (x - whole.states.index_select(0, tokens)).abs().max() <= 1e-5
        assert (encoder.pool(x, packed) - whole.pooled[staying]).abs().max() <= 1e-5


@pytest.mark.parametrize("padded", [False, True])
def test_some_texts_of_a_batch_are_the_batch_of_these_texts(padded: bool) -> None:
    batch, texts = batch_of([2, 40, 33, 7, 33]), [4, 0, 3]
    parts = [slice(start, start + length) for start, length in zip(batch.starts, batch.lengths, strict=True)]
    alone = pack([batch.token_ids[parts[i]] for i in texts], [batch.segment_ids[parts[i]] for i in texts])
    some, tokens = Packed.from_batch(batch, padded=padded).restrict(texts)
    torch.testing.assert_close(asdict(some), asdict(Packed.from_batch(alone, padded=padded)), rtol=0, atol=0)
    assert batch.token_ids[tokens].tolist() == alone.token_ids.tolist()


def test_equal_widths_have_no_projection() -> None:
    assert model_of(embedding_size=32).encoder.projection is None
    assert model_of().encoder.projection is not None


def test_every_dropout_is_where_google_has_it() -> None:
    """Switch on one dropout at a time, with everything dropped but the residual, and see what is left."""
    model = model_of(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.0)
    encoder = model.encoder.train()
    places = {
        "embeddings": encoder.embeddings.dropout,
        "attention output": encoder.attention[0].dropout,
        "ffn output": encoder.ffn[0].dropout,
    }
    for place in places.values():
        place.p = 0.0
    packed = Packed.from_batch(batch_of([6, 11]))
    reference = encoder(packed).states
    for name, place in places.items():
        place.p = 0.5
        assert not torch.allclose(encoder(packed).states, reference), name
        place.p = 0.0
    assert torch.equal(encoder(packed).states, reference)
    for attention in encoder.attention:
        attention.attention_dropout = 0.5
    assert not torch.allclose(encoder(packed).states, reference), "attention probabilities"
    assert torch.allclose(encoder.eval()(packed).states, reference, atol=1e-6)


def test_initial_weights_are_a_normal_cut_at_two_deviations() -> None:
    model = new_model(AlbertConfig(), ("mlm", "order"), seed=3)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            assert parameter.abs().max() <= 0.04, name
            if parameter.numel() > 100_000:
                assert abs(parameter.std().item() - 0.02 * 0.8796) < 2e-4, name  # deviation of the cut normal
        else:
            norm = "norm" in name and name.endswith("weight")
            assert torch.equal(parameter, torch.full_like(parameter, float(norm))), name


def test_the_same_seed_gives_the_same_weights_whatever_the_global_state() -> None:
    torch.manual_seed(1)
    first = new_model(AlbertConfig(**SMALL), seed=9).state_dict()
    torch.manual_seed(2)
    second = new_model(AlbertConfig(**SMALL), seed=9).state_dict()
    other = new_model(AlbertConfig(**SMALL), seed=10).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["encoder.embeddings.word.weight"], other["encoder.embeddings.word.weight"])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_are_computed_in_fp32(dtype: torch.dtype) -> None:
    norm = LayerNorm(8, eps=1e-12).to(dtype)
    flat = torch.full((2, 8), 3.0, dtype=dtype)  # no variance: in fp16 eps is 0 and the norm would be NaN
    assert norm(flat).dtype == dtype
    assert torch.equal(norm(flat), torch.zeros(2, 8, dtype=dtype))


def test_a_model_in_double_precision_is_exact_in_it() -> None:
    x = torch.randn(7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-12).sqrt()
    assert (LayerNorm(8, eps=1e-12).double()(x) - expected).abs().max() <= 1e-14
    model, batch = model_of().double(), batch_of([2, 40, 33])
    with torch.no_grad():
        one, other = (model(Packed.from_batch(batch, padded=padded)).states for padded in (False, True))
    assert one.dtype == torch.float64
    assert (one - other).abs().max() <= 1e-12


def test_bf16_autocast_stays_near_fp32() -> None:
    model, batch = model_of(), batch_of([5, 60])
    with torch.no_grad():
        exact = model(batch).states
        with torch.autocast("cpu", dtype=torch.bfloat16):
            near = model(batch).states
    assert (exact - near.float()).abs().mean() < 0.05


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("lengths", [[9, 40, 23], [12, 12]])
@pytest.mark.parametrize("first", [False, True])
def test_attention_in_bf16_is_that_in_fp32_but_for_rounding(padded: bool, lengths: list[int], first: bool) -> None:
    packed = Packed.from_batch(batch_of(lengths), padded=padded)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(sum(lengths), 16, generator=generator).bfloat16() for _ in range(3)]
    found = []
    for kind in (torch.float32, torch.bfloat16):
        query, key, value = (part.to(kind).requires_grad_() for part in inputs)
        asked = query.index_select(0, packed.starts) if first else query
        mixed = attend(asked, key, value, packed=packed, num_heads=2, dropout=0.0)
        assert mixed.dtype is kind
        mixed.square().sum().backward()
        found.append([mixed.detach(), *(part.grad for part in (query, key, value))])
    for exact, near in zip(*found, strict=True):
        assert (exact - near.float()).norm() < 0.02 * exact.norm()
    dropped = attend(asked, key, value, packed=packed, num_heads=2, dropout=0.5)
    assert (dropped - mixed).float().norm() > 0.1 * mixed.float().norm()


def test_texts_lie_in_padded_rows_where_attention_is_in_bf16() -> None:
    batch = batch_of([5, 60])
    assert Packed.from_batch(batch).rows is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Packed.from_batch(batch).rows is not None
        assert Packed.from_batch(batch, padded=False).rows is None


@pytest.mark.parametrize("lengths", [[5, 9, 30], [33, 7, 7, 20], [60, 4]])
def test_rows_that_make_a_round_number_of_tokens_change_nothing(lengths: list[int]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        whole = Packed.from_batch(batch_of(lengths))
    assert whole.rows is not None
    assert (whole.rows.length % WHOLE_LENGTH, (sum(lengths) + whole.rows.filler) % WHOLE_TOKENS) == (0, 0)
    assert (whole.rows.filler > 0) == (sum(lengths) != WHOLE_TOKENS)
    found = []
    for packed in (whole, Packed.from_batch(batch_of(lengths), padded=False)):
        model = model_of()
        encoded = model.encoder(packed, all_layers=True)
        assert encoded.pooled is not None
        (encoded.states.sin().sum() + encoded.layers[1].cos().sum() + encoded.pooled.sum()).backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        found.append((encoded.states, *encoded.layers, encoded.pooled, *gradients))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def loss_of(model: Albert, batch: Batch) -> torch.Tensor:
    encoded = model(batch)
    positions = torch.tensor([1, 4, 7])
    return cross_entropy(model.mlm_logits(encoded, positions), positions) + encoded.states.square().mean()


@pytest.mark.parametrize("sharing", ["all", "attention", "none"])
def test_checkpointing_gives_the_same_gradients(sharing: str) -> None:
    batch = batch_of([5, 9, 30])
    gradients = []
    for checkpointing in (False, True):
        model = model_of(("mlm",), sharing=sharing, hidden_dropout_prob=0.1).train()
        model.encoder.checkpointing = checkpointing
        torch.manual_seed(0)
        loss_of(model, batch).backward()
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_checkpointing_keeps_less_for_backward() -> None:
    kept = []
    for checkpointing in (False, True):
        model = model_of(("mlm",)).train()
        model.encoder.checkpointing = checkpointing
        sizes: list[int] = []

        def note(tensor: torch.Tensor, sizes: list[int] = sizes) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            loss_of(model, batch_of([64, 64]))
        kept.append(sum(sizes))
    assert kept[1] < kept[0] / 3


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("c++") is None, reason="no C++ compiler")
def test_the_compiled_encoder_agrees_and_does_not_recompile_for_every_length() -> None:
    model = model_of()
    graphs = 0

    def count(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        nonlocal graphs
        graphs += 1
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(graph, inputs)

    compiled = torch.compile(model.encoder, dynamic=True, backend=count)
    for seed, lengths in enumerate([[5, 9, 30], [7, 11, 21], [40, 3, 8], [6, 13, 50]]):
        packed = Packed.from_batch(batch_of(lengths, seed), padded=True)
        with torch.no_grad():
            assert (compiled(packed).states - model.encoder(packed).states).abs().max() <= 1e-5
    assert graphs <= 2


def test_the_encoder_is_an_ordinary_module() -> None:
    encoder = Encoder(AlbertConfig(**SMALL))
    assert isinstance(encoder, torch.nn.Module)
    assert len(list(encoder.parameters())) == len({id(p) for p in encoder.parameters()})


def test_positions_can_start_sinusoidal_and_are_alike_where_they_are_near() -> None:
    model = model_of(embedding_size=63)
    init_sinusoidal_positions(model)
    weight = model.encoder.embeddings.position.weight.detach()
    alike = torch.nn.functional.cosine_similarity(weight[:1], weight[:20])
    assert weight.pow(2).mean().sqrt() == pytest.approx(model.config.initializer_range, rel=0.02)
    assert (alike[1:8].diff() < 0).all()
    other = torch.nn.functional.cosine_similarity(weight[300:301], weight[300:320])
    torch.testing.assert_close(alike, other, atol=0.02, rtol=0)  # the same distance looks the same anywhere


def test_words_can_start_from_vectors_and_the_bias_from_frequencies() -> None:
    model = new_model(AlbertConfig(**SMALL), ["mlm"])
    before = model.encoder.embeddings.word.weight.detach().clone()
    vectors = torch.randn(before.shape, generator=torch.Generator().manual_seed(0))
    vectors[:5] = 0
    vectors[7] *= 16
    frequencies = torch.arange(len(vectors))
    init_words(model, vectors, frequencies)
    word, bias = model.encoder.embeddings.word.weight.detach(), model.heads["mlm"].bias.detach()
    assert torch.equal(word[:5], before[:5])  # nothing is known of them
    assert word[5:].pow(2).mean().sqrt() == pytest.approx(WORD_SIZE, rel=1e-4)
    directions = torch.nn.functional.cosine_similarity(word[5:], vectors[5:])
    torch.testing.assert_close(directions, torch.ones_like(directions))
    lengths, given = word.norm(dim=1), vectors.norm(dim=1)
    assert lengths[7] / lengths[8] == pytest.approx(float((given[7] / given[8]).sqrt()), rel=1e-4)
    shares = (frequencies + 1) / (frequencies + 1).sum()
    torch.testing.assert_close(bias.softmax(0), shares)
