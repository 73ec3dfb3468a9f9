"""Every route gives what the library gives offline, in the form that its clients expect."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import albert
from servers import Running, serving

A, B = "The old harbour was quiet.", "Nobody had seen such a winter in forty years."
LONG = "the small grey ship came in from the north " * 30


def close(one: object, other: object) -> bool:
    return bool(np.allclose(np.array(one, dtype=float), np.array(other, dtype=float), atol=1e-5))


def test_vectors_are_those_of_embed(server: Running, folders: dict[str, str]) -> None:
    model = albert.load(folders["plain"])
    assert close(server.post("/embed", inputs=A), model.embed([A], normalize=True))
    assert close(server.post("/embed", inputs=[A, B, LONG], normalize=False), model.embed([A, B, LONG]))


def test_ids_are_taken_as_tokens_with_and_without_the_special_ones(server: Running) -> None:
    ((*tokens,),) = server.post("/tokenize", inputs=A)
    ids = [token["id"] for token in tokens]
    both = server.post("/embed", inputs=[A, ids, ids[1:-1]])
    assert close(both[0], both[1])
    assert close(both[0], both[2])
    assert close(server.post("/embed", inputs=ids), [both[0]])


def test_dimensions_keep_the_first_numbers_at_length_1(server: Running) -> None:
    (whole,), (short,) = server.post("/embed", inputs=A), server.post("/embed", inputs=A, dimensions=3)
    assert close(short, np.array(whole[:3]) / np.linalg.norm(whole[:3]))
    assert server.refusal("/embed", inputs=A, dimensions=17) == (422, "Validation")


def test_truncate_cuts_refuses_or_reads_in_windows_and_is_marked(server: Running, folders: dict[str, str]) -> None:
    assert server.refusal("/embed", inputs=LONG, truncate=False) == (422, "Tokenizer")
    cut = server.ask("POST", "/embed", {"inputs": LONG, "truncate": True})
    left = server.ask("POST", "/embed", {"inputs": LONG, "truncate": True, "truncation_direction": "Left"})
    windows = server.ask("POST", "/embed", {"inputs": LONG})
    assert [one.headers["x-truncated"] for one in (cut, left, windows)] == ["1", "1", "0"]
    assert not close(cut.body, left.body)
    assert not close(cut.body, windows.body)
    tuned = server.ask("POST", "/models/alike/embed", {"inputs": LONG})
    assert tuned.headers["x-truncated"] == "1"
    assert close(tuned.body, albert.load(folders["alike"]).embed([LONG], normalize=True))


def test_a_model_that_reads_all_of_a_long_text_marks_it_only_when_it_is_cut(
    folders: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    shutil.copytree(folders["film"], folder)
    told = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps(told | {"long": "mean"}))
    truth = albert.load(folder).classify(LONG).probabilities
    with serving({"pages": str(folder)}) as server:
        said = {cut: server.ask("POST", "/predict", {"inputs": LONG, "truncate": cut}) for cut in (None, True, False)}
        raws = server.ask("POST", "/predict", {"inputs": LONG, "raw_scores": True})
        a_bit = " ".join(LONG.split()[:14])  # longer than a window of 32 tokens, by less than another one
        cut_a_bit = server.post("/predict", inputs=a_bit, truncate=True)
        assert len(server.post("/predict", inputs=a_bit)) == 2
    assert {one["label"]: one["score"] for one in said[None].body} == pytest.approx(truth, abs=1e-5)
    powers = {one["label"]: np.exp(one["score"]) for one in raws.body}
    shares = {label: power / sum(powers.values()) for label, power in powers.items()}
    assert shares == pytest.approx(truth, abs=1e-5)
    first = albert.load(folders["film"]).classify(LONG).probabilities
    assert {one["label"]: one["score"] for one in said[True].body} == pytest.approx(first, abs=1e-5)
    first = albert.load(folders["film"]).classify(a_bit).probabilities
    assert {one["label"]: one["score"] for one in cut_a_bit} == pytest.approx(first, abs=1e-5)
    assert [said[cut].headers.get("x-truncated") for cut in (None, True)] == ["0", "1"]
    assert said[False].status == 422


def test_paths_that_are_no_route_and_methods_that_none_takes_are_refused(server: Running) -> None:
    for path in ("/models//embed", "/models/plain/nothing", "/embed/more", "/models/plain/embed/more"):
        assert server.ask("POST", path, {"inputs": A}).status in (404, 405), path
    assert server.ask("GET", "/embed").status == 405
    assert server.ask("PUT", "/models/plain/embed", {"inputs": A}).status == 405
    assert server.ask("POST", "/models/nobody/embed", {"inputs": A}).status == 404


def test_embed_all_gives_a_vector_per_token(server: Running) -> None:
    ((*tokens,),) = server.post("/tokenize", inputs=A)
    (rows,) = server.post("/embed_all", inputs=A)
    assert len(rows) == len(tokens)
    assert close(np.mean(rows, axis=0), server.post("/embed", inputs=A, normalize=False)[0])


def test_similarity_is_the_cosine(server: Running, folders: dict[str, str]) -> None:
    found = server.post("/similarity", inputs={"source_sentence": A, "sentences": [A, B]})
    assert close(found, albert.load(folders["plain"]).similarity(A, [A, B]))


def test_predict_takes_a_text_a_pair_or_a_list(server: Running, folders: dict[str, str]) -> None:
    truth = albert.load(folders["film"]).classify(A).probabilities
    (first, second) = server.post("/predict", inputs=A)
    assert first["score"] > second["score"]
    assert close([first["score"], second["score"]], [truth[first["label"]], truth[second["label"]]])
    listed = server.post("/predict", inputs=[[A], [B]])[0]
    assert [one["label"] for one in listed] == [first["label"], second["label"]]
    assert close([one["score"] for one in listed], [first["score"], second["score"]])
    assert server.refusal("/predict", inputs=[A, B]) == (422, "Validation")  # the model was trained on one text
    raw = server.post("/predict", inputs=A, raw_scores=True)
    assert close(np.exp(raw[0]["score"] - raw[1]["score"]), first["score"] / second["score"])
    ((score,), _) = server.post("/models/score/predict", inputs=[[A, B], [B, A]])
    assert close(score["score"], albert.load(folders["score"]).classify(A, B).value)
    labels = server.post("/models/topics/predict", inputs=A)
    truth = albert.load(folders["topics"]).classify(A).probabilities
    assert all(close(one["score"], truth[one["label"]]) for one in labels)
    assert len(labels) == 3


def test_rerank_sorts_by_a_regression_or_by_cosines(server: Running, folders: dict[str, str]) -> None:
    texts = [A, B, "Maria wrote a long letter."]
    model = albert.load(folders["score"])
    truth = [model.classify("Who wrote?", text).value for text in texts]
    ranks = server.post("/rerank", query="Who wrote?", texts=texts, return_text=True)
    assert [one["index"] for one in ranks] == np.argsort(truth)[::-1].tolist()
    assert close([one["score"] for one in ranks], sorted(truth, reverse=True))
    assert [one["text"] for one in ranks] == [texts[one["index"]] for one in ranks]
    ranks = server.post("/models/alike/rerank", query="Who wrote?", texts=texts)
    assert close(ranks[0]["score"], max(albert.load(folders["alike"]).similarity("Who wrote?", texts)))
    assert server.refusal("/models/film/rerank", query=A, texts=texts) == (424, "Backend")


def test_our_verbs_give_the_records_of_predict(server: Running, folders: dict[str, str]) -> None:
    given = albert.load(folders["reader"]).answer("Who wrote?", B)
    said = server.post("/answer", question="Who wrote?", context=B)
    assert (said["answer"], said["start"], said["truncated"]) == (given.text, given.start, False)
    assert server.post("/answer", question="who " * 40, context=B)["truncated"]
    chosen = server.post("/choose", question="Who came?", choices=["a man", "a dog"], context=A)
    assert close(
        chosen["probabilities"], albert.load(folders["exam"]).choose("Who came?", ["a man", "a dog"], A).probabilities
    )
    assert not chosen["truncated"]
    assert server.post("/choose", question="Who came?", choices=["a man", "a dog"], context=LONG)["truncated"]
    both = server.post("/tag", inputs=[A, ["Peter", "Smith"]])
    assert [word["text"] for word in both[1]["words"]] == ["Peter", "Smith"]
    assert [word["tag"] for word in both[0]["words"]] == [w.tag for w in albert.load(folders["names"]).tag(A).words]
    (blank,) = server.post("/fill", inputs="the [MASK] ship", top=2)["blanks"]
    (truth,) = albert.load(folders["plain"]).fill("the [MASK] ship", top=2)
    assert [one["piece"] for one in blank["guesses"]] == [one.piece for one in truth.guesses]


def test_tokens_and_their_characters_and_back(server: Running) -> None:
    ((*tokens,),) = server.post("/tokenize", inputs=A)
    assert [tokens[0]["text"], tokens[-1]["text"]] == ["[CLS]", "[SEP]"]
    assert all(A[t["start"] : t["stop"]].lower() == t["text"].replace("▁", "") for t in tokens[1:-1])
    ids = [token["id"] for token in tokens]
    assert server.post("/decode", ids=ids) == [A.lower()]
    assert server.post("/decode", ids=[ids], skip_special_tokens=False) == [f"[CLS] {A.lower()} [SEP]"]
    assert server.refusal("/decode", ids=[99999]) == (422, "Tokenizer")


def test_openai_embeddings_are_normalised_numbers_or_base64(server: Running) -> None:
    said = server.post("/v1/embeddings", input=[A, B], model="plain")
    coded = server.post("/embeddings", input=[A, B], encoding_format="base64")
    for one, other in zip(said["data"], coded["data"], strict=True):
        assert close(np.frombuffer(base64.b64decode(other["embedding"]), dtype="<f4"), one["embedding"])
    assert close([one["embedding"] for one in said["data"]], server.post("/embed", inputs=[A, B]))
    assert (said["object"], said["model"], said["data"][1]["index"]) == ("list", "plain", 1)
    assert said["usage"]["prompt_tokens"] == said["usage"]["total_tokens"] > 10
    refused = server.ask("POST", "/v1/embeddings", {"input": []})
    assert (refused.status, refused.body["code"], refused.body["error_type"]) == (400, 400, "Empty")
    assert refused.body["message"]


def test_a_route_without_a_name_asks_the_first_model_that_can(server: Running) -> None:
    assert server.ask("GET", "/info").body["model_id"] == "plain"
    assert server.ask("GET", "/models/film/info").body["model_type"]["classifier"]["id2label"] == {
        "0": "bad",
        "1": "good",
    }
    assert {one["model_id"] for one in server.ask("GET", "/models").body} >= {"plain", "film", "reader"}
    assert server.ask("GET", "/v1/models").body["data"][0]["id"] == "plain"
    assert server.refusal("/models/film/fill", inputs="a [MASK]") == (424, "Backend")
    assert server.refusal("/models/none/embed", inputs=A) == (404, "Validation")
    assert server.refusal("/nothing", inputs=A) == (404, "Validation")


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/embed", {"inputs": ""}, (400, "Empty")),
        ("/embed", {"inputs": []}, (400, "Empty")),
        ("/embed", {"inputs": ["good", "  "]}, (400, "Empty")),
        ("/embed", {"inputs": [[]]}, (400, "Empty")),
        ("/embed", {}, (422, "Validation")),
        ("/embed", {"inputs": 7}, (422, "Validation")),
        ("/embed", {"inputs": {"a": 1}}, (422, "Validation")),
        ("/embed", {"inputs": [True]}, (422, "Validation")),
        ("/embed", {"inputs": "a", "truncate": "yes"}, (422, "Validation")),
        ("/embed", {"inputs": [5, 99999]}, (422, "Tokenizer")),
        ("/embed", {"inputs": [-1]}, (422, "Tokenizer")),
        ("/embed", {"inputs": "a", "prompt_name": "query"}, (422, "Validation")),
        ("/predict", {"inputs": ["a", "b", "c"]}, (422, "Validation")),
        ("/predict", {"inputs": [["a", "b", "c"]]}, (422, "Validation")),
        ("/predict", {"inputs": " "}, (400, "Empty")),
        ("/rerank", {"query": "a", "texts": []}, (400, "Empty")),
        ("/fill", {"inputs": "nothing to fill"}, (422, "Validation")),
        ("/fill", {"inputs": "a [MASK]", "top": 0}, (422, "Validation")),
        ("/choose", {"question": "who", "choices": ["one"]}, (422, "Validation")),
        ("/answer", {"question": ["a", "b"], "context": ["c"]}, (422, "Validation")),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, (400, "Empty")),
    ],
)
def test_what_is_wrong_is_refused_by_type(server: Running, path: str, body: dict[str, object], refusal: object) -> None:
    assert server.refusal(path, **body) == refusal


def test_a_refusal_names_the_input_and_quotes_no_text(server: Running) -> None:
    said = server.ask("POST", "/embed", {"inputs": ["secret words", LONG], "truncate": False}).body["error"]
    assert said.startswith("inputs[1] has 540 tokens")
    assert "secret" not in said
    said = server.ask("POST", "/embed", {"inputs": {"secret words": 1}}).body["error"]
    assert "secret" not in said
