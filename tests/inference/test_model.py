"""`albert.load`: every ability, one input and many, any text, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import albert
from albert.batch import pack
from albert.errors import DataError, ModelError, UsageError
from albert.inference.fill import BlankFeature, Fill, PlainText
from albert.inference.model import Model
from albert.inference.predictor import Predictor
from albert.model.folder import load_model
from albert.tasks.choice import Choice
from albert.tasks.classification import Classification, MultiLabel, Regression
from albert.tasks.classified import Label, Labels, Number
from albert.tasks.span import SpanTask
from albert.tasks.tagging import Tagging
from albert.tokenizer import Tokenizer

MakeFolder = Callable[..., Path]
SENTIMENT = Classification(("bad", "good"), max_length=64)
ODD_TEXTS = ["", " \t\n ", "🙂🙂", "\u200b", "word " * 20_000, "x" * 100_000, "a\0b", "[MASK] [CLS]", "\ud800"]


def test_one_text_gives_one_result_and_a_list_gives_a_list_in_order(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=SENTIMENT))
    texts = ["What a terrible film", "warm", "A good question is worth more than ten quick answers", "the end"] * 5
    results = model.classify(texts)
    assert len(results) == 20
    assert len({round(result.probabilities["good"], 6) for result in results}) == 4  # type: ignore[union-attr]
    for text, result in zip(texts, results, strict=True):
        alone = model.classify(text)
        assert isinstance(alone, Label)
        assert isinstance(result, Label)
        assert alone.label == result.label
        assert alone.probabilities == pytest.approx(result.probabilities, abs=1e-5)
        assert sum(result.probabilities.values()) == pytest.approx(1)
    assert model.classify([]) == []


def test_pairs_are_read_as_pairs(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=SENTIMENT))
    alone, pair = model.classify("the end"), model.classify("the end", "the town")
    assert alone != pair
    assert model.classify(["the end"], ["the town"]) == [pair]
    with pytest.raises(UsageError, match="2 of text and 1 of pair"):
        model.classify(["a", "b"], ["c"])
    with pytest.raises(UsageError, match="1 of text and 1 of pair"):
        model.classify("a", ["c"])  # type: ignore[call-overload]


def test_several_classes_and_numbers(make_folder: MakeFolder) -> None:
    several = albert.load(make_folder(task=MultiLabel(("a", "b", "c"), max_length=64, threshold=0.0))).classify(
        "the end"
    )
    assert isinstance(several, Labels)
    assert several.labels == ("a", "b", "c")
    number = albert.load(make_folder(task=Regression(max_length=64), hidden_size=32)).classify(["the end"])
    assert isinstance(number[0], Number)


def test_an_answer_stands_in_the_text_where_it_says(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=SpanTask(max_length=64, stride=16)))
    text = "Maria wrote a long LETTER to her sister in Paris, but it never left the post office. " * 4
    answer = model.answer("What did Maria write?", text)
    assert answer.text
    assert text[answer.start : answer.end] == answer.text
    assert all(text[one.start : one.end] == one.text for one in answer.candidates)
    several = model.answer(["What did Maria write?", "Who?"], text)
    assert several[0].text == answer.text
    assert len(model.answer(["Who?"], ["Peter came in."])) == 1
    with pytest.raises(UsageError, match="2 of question and 1 of context"):
        model.answer(["a", "b"], ["c"])


def test_choices_are_chosen_from(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=Choice(2, max_length=64)))
    chosen = model.choose("Who came?", ["nobody", "Maria", "the dog"], "The dog came.")
    assert chosen.text == ["nobody", "Maria", "the dog"][chosen.choice]
    assert model.choose(["Who came?"], [["nobody", "Maria", "the dog"]], "The dog came.") == [chosen]
    assert len(model.choose(["a?", "b?"], [["x", "y"], ["x", "y", "z"]])[1].probabilities) == 3
    for wrong in (["only"], "text", []):
        with pytest.raises(UsageError, match="at least two texts"):
            model.choose("Who?", wrong)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="1 questions and 2 sets"):
        model.choose(["Who?"], [["x", "y"], ["x", "y"]])


def test_words_are_tagged_in_texts_and_in_lists_of_words(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=Tagging(("O", "B-PER", "I-PER"), max_length=64)))
    tagged = model.tag("Peter Smith works")
    assert [word.text for word in tagged.words] == ["Peter", "Smith", "works"]
    both = model.tag(["Peter Smith works", ["Peter", "Smith", "works"]])  # type: ignore[list-item]
    assert [[word.tag for word in one.words] for one in both] == [[word.tag for word in tagged.words]] * 2


def test_blanks_are_filled_with_the_best_words_of_the_vocabulary(make_folder: MakeFolder, tokenizer: Tokenizer) -> None:
    folder = make_folder("mlm", "order")
    text = "the [MASK] ship [MASK]."
    blanks = albert.load(folder).fill(text, top=4)
    assert [text[blank.start : blank.end] for blank in blanks] == ["[MASK]", "[MASK]"]
    network = load_model(folder).model
    mask = tokenizer.mask_id
    ids = [tokenizer.cls_id, *tokenizer.encode("the"), mask, *tokenizer.encode("ship"), mask, *tokenizer.encode(".")]
    with torch.no_grad():
        encoded = network(pack([[*ids, tokenizer.sep_id]]))
        places = torch.tensor([place for place, number in enumerate(ids) if number == mask])
        shares = network.mlm_logits(encoded, places).softmax(-1)
    no_words = [*range(5), *(i for i, p in enumerate(tokenizer.pieces) if not re.search(r"[^\W_]", p))]
    assert tokenizer.pieces.index("▁") in no_words
    shares[:, no_words] = -1
    expected = shares.topk(4)
    for blank, pieces, shares in zip(blanks, expected.indices.tolist(), expected.values.tolist(), strict=True):
        assert [guess.piece for guess in blank.guesses] == [tokenizer.pieces[piece] for piece in pieces]
        assert [guess.probability for guess in blank.guesses] == pytest.approx(shares, abs=1e-5)


def test_only_words_are_offered_and_a_piece_that_continues_one_is_marked() -> None:
    fill = Fill(["<unk>", "▁", "▁house", ",", "s", "▁3", "的"], 16, top=9, special=frozenset({0}))
    feature = BlankFeature([0, 1, 2], [0, 0, 0], [1])
    output = fill.outputs(feature, {"mlm": (np.array([[9.0, 8, 7, 6, 5, 4, 3]], dtype=np.float32),)})
    (blank,) = fill.decide(PlainText("[MASK]"), [feature], [output])
    found = [(guess.text, guess.continues) for guess in blank.guesses]
    assert found == [("house", False), ("s", True), ("3", False), ("的", False)], "Chinese has no spaces"


def test_every_blank_of_a_long_text_is_filled(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder("mlm"))
    text = ("the old harbour was quiet " * 7 + "[MASK] ") * 9
    blanks = model.fill(text)
    assert [text[blank.start : blank.end] for blank in blanks] == ["[MASK]"] * 9
    with pytest.raises(DataError, match=r"no \[MASK\] in the text"):
        model.fill("nothing to do")


def test_a_vector_is_the_mean_of_the_last_states_over_all_tokens(make_folder: MakeFolder, tokenizer: Tokenizer) -> None:
    folder = make_folder()
    model, network = albert.load(folder), load_model(folder).model
    long = "the town was running out of coal and bread " * 20
    vectors = model.embed(["the end", long])
    ids = tokenizer.encode(long)
    windows = [[tokenizer.cls_id, *ids[start : start + 62], tokenizer.sep_id] for start in range(0, len(ids), 62)]
    with torch.no_grad():
        states = torch.cat([network(pack([window])).states for window in windows])
    assert vectors[1] == pytest.approx(states.mean(0).numpy(), abs=1e-5)
    assert vectors[0].shape == (16,)
    assert vectors[0].dtype == np.float32
    assert model.embed("the end") == pytest.approx(vectors[0], abs=1e-5)


def test_no_text_is_too_strange(make_folder: MakeFolder) -> None:
    classifier, embedder = albert.load(make_folder(task=SENTIMENT)), albert.load(make_folder())
    answerer = albert.load(make_folder(task=SpanTask(max_length=64)))
    chooser = albert.load(make_folder(task=Choice(max_length=64)))
    for text in ODD_TEXTS:
        assert isinstance(classifier.classify(text), Label)
        if text.strip():
            assert np.isfinite(embedder.embed(text)).all()
        answer = answerer.answer("", text[:5000])
        assert answer.start is None or text[answer.start : answer.end] == answer.text
        assert chooser.choose(text, ["", text]).choice in (0, 1)


def test_what_a_model_can_not_do_it_says_with_what_it_can(make_folder: MakeFolder) -> None:
    pretrained = albert.load(make_folder("mlm", "order"))
    with pytest.raises(UsageError, match="top=0: must be 1 at least"):
        pretrained.fill("a [MASK]", top=0)
    assert pretrained.abilities == ["fill", "embed", "similarity", "search"]
    with pytest.raises(UsageError, match="can't classify: its heads are mlm, order: it can fill, embed"):
        pretrained.classify("x")
    tuned = albert.load(make_folder(task=SENTIMENT))
    assert tuned.abilities == ["classify", "embed", "similarity", "search"]
    calls: list[Callable[[], object]] = [
        lambda: tuned.answer("x", "y"),
        lambda: tuned.choose("x", ["y", "z"]),
        lambda: tuned.tag("x"),
        lambda: tuned.fill("[MASK]"),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="its heads are classifier, for classification: it can classify, embed"):
            call()
    for wrong in (5, {"text": "x"}, ["x", None]):
        with pytest.raises(UsageError, match="neither a text nor a list of texts"):
            tuned.classify(wrong)  # type: ignore[call-overload]


def test_a_folder_of_transformers_is_used_without_task_json(make_folder: MakeFolder) -> None:
    folder = make_folder("classifier", labels=("sad", "glad", "mad"))
    assert not (folder / "task.json").exists()
    result = albert.load(folder).classify("the end")
    assert isinstance(result, Label)
    assert set(result.probabilities) == {"sad", "glad", "mad"}


def test_a_run_folder_means_its_model(make_folder: MakeFolder, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    make_folder(task=SENTIMENT).rename(run / "model")
    assert albert.load(run).abilities == ["classify", "embed", "similarity", "search"]


def test_a_head_without_weights_is_refused(make_folder: MakeFolder) -> None:
    folder = make_folder()
    config = folder / "config.json"
    config.write_text(config.read_text().replace("AlbertModel", "AlbertForSequenceClassification"))
    with pytest.raises(ModelError, match="no weights for classifier"):
        albert.load(folder)


def test_weights_that_are_no_numbers_and_a_vocabulary_that_is_too_large_are_refused(make_folder: MakeFolder) -> None:
    folder = make_folder(task=SENTIMENT)
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "LayerNorm.weight" in name)
    save_file(weights | {name: weights[name] * float("nan")}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=rf"model\.safetensors: {re.escape(name)} has numbers that are not finite"):
        albert.load(folder)
    few = make_folder(vocab_size=50)
    with pytest.raises(ModelError, match="pieces, its model 50: they do not belong together"):
        albert.load(few)


def test_memory_holds_a_window_of_a_stream_and_no_more(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder())
    taken = 0

    def texts() -> Iterator[PlainText]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield PlainText(f"word {number}")

    results = model.predictor.predict(model.embedding(), texts(), window=10)
    next(results)
    assert taken == 10
    assert sum(1 for _ in results) == 99


def test_the_first_decisions_of_a_stream_come_soon(make_folder: MakeFolder) -> None:
    model, taken = albert.load(make_folder()), iter(range(1000))
    next(model.predictor.predict(model.embedding(), (PlainText(f"word {number}") for number in taken)))
    assert next(taken) == 64, "progress of a small file can be shown"


def test_batches_of_any_size_decide_the_same(make_folder: MakeFolder, tokenizer: Tokenizer) -> None:
    folder = make_folder(task=SENTIMENT)
    model = albert.load(folder)
    texts = [" ".join(["the old harbour was quiet"] * (1 + number % 7)) for number in range(40)]
    small = Model(
        Predictor(model.predictor.engine, tokenizer, batch_tokens=1), name="", folder=folder, task=SENTIMENT, columns={}
    )
    for one, other in zip(model.classify(texts), small.classify(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)  # type: ignore[union-attr]


def test_a_method_that_no_task_has_is_no_attribute(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=SENTIMENT))
    assert not hasattr(model, "grade")
    with pytest.raises(UsageError, match="can't tag: its heads are classifier, for classification: it can classify"):
        model.tag("the end")


def test_importing_albert_loads_no_torch() -> None:
    code = (
        "import albert, sys; assert callable(albert.load); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_shows_itself_and_its_name_is_escaped(make_folder: MakeFolder) -> None:
    folder = make_folder(task=SENTIMENT)
    loaded = albert.load(folder)
    model = Model(loaded.predictor, name="<b>", folder=folder, task=SENTIMENT, columns={})
    assert repr(model).startswith("<Model name: '<b>'; task: classification (bad, good); can: classify, embed")
    shown = model._repr_html_()
    assert "<td>&#x27;&lt;b&gt;&#x27;</td>" in shown
    assert "<b>" not in shown
    assert "fill" in repr(albert.load(make_folder("mlm")))


def test_a_list_of_words_is_said_to_be_taken_as_texts(
    make_folder: MakeFolder, caplog: pytest.LogCaptureFixture
) -> None:
    model = albert.load(make_folder(task=Tagging(("O", "B-PER"), max_length=64)))
    (one,) = model.tag([["Maria", "wrote"]])
    assert [word.text for word in one.words] == ["Maria", "wrote"]
    assert len(model.tag(["Maria wrote", "Peter read"])) == 2
    assert model.tag(words=["Maria", "wrote"]) == one
    assert not caplog.records
    assert len(model.tag(["Maria", "wrote"])) == 2
    assert "took a list of 2 words as 2 texts: for one sentence say tag(words=[…])" in caplog.text
    with pytest.raises(UsageError, match=r"give a text, a list of texts, or words=\[…\] of one sentence"):
        model.tag()  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="give a text, a list of texts, or words"):
        model.tag("Maria wrote", words=["Maria"])  # type: ignore[call-overload]


def test_the_kind_of_a_decision_may_be_said_and_is_checked(make_folder: MakeFolder) -> None:
    model = albert.load(make_folder(task=Regression(max_length=64)))
    assert isinstance(model.classify("the end", kind="regression").value, float)
    with pytest.raises(UsageError, match=r"kind='multi-label': .* was tuned for regression: say that, or leave it out"):
        model.classify("the end", kind="multi-label")
    with pytest.raises(AttributeError, match=r"Number has no \.label: this model's decisions have \.value"):
        _ = model.classify("the end").label


def test_what_has_no_word_or_blank_is_named_by_its_place_in_a_list(make_folder: MakeFolder, tmp_path: Path) -> None:
    model = albert.load(make_folder("mlm"))
    with pytest.raises(DataError, match=r"^text 2: no \[MASK\] in the text"):
        model.fill(["a [MASK]", "the end"])
    with pytest.raises(DataError, match=r"^no \[MASK\] in the text"):
        model.fill("the end")
    with pytest.raises(DataError, match=r"^the text is empty"):
        model.embed(" ")
    with pytest.raises(DataError, match=r"^text 2: the text is empty"):
        model.save_vectors(["the end", ""], tmp_path / "v")
