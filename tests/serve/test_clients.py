"""Other people's clients work as they are: openai's, and huggingface_hub's InferenceClient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import albert
from servers import Running

TEXTS = ["The old harbour was quiet.", "A dog waits at home."]


def test_the_openai_client_gets_vectors(server: Running, folders: dict[str, str]) -> None:
    openai = pytest.importorskip("openai", reason="the openai client is not installed: make setup")
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    truth = albert.load(folders["plain"]).embed(TEXTS, normalize=True)
    coded = client.embeddings.create(input=TEXTS, model="plain")  # asks for base64
    plain = client.embeddings.create(input=TEXTS, model="plain", encoding_format="float", dimensions=16)
    for said in (coded, plain):
        assert np.allclose([one.embedding for one in said.data], truth, atol=1e-5)
        assert said.usage.prompt_tokens > 8
    assert [one.id for one in client.models.list()][:2] == ["plain", "film"]
    with pytest.raises(openai.UnprocessableEntityError, match="dimensions"):
        client.embeddings.create(input=TEXTS, model="plain", dimensions=99)


def test_the_inference_client_gets_vectors_classes_and_similarities(server: Running, folders: dict[str, str]) -> None:
    hub: Any = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: make setup")
    plain, film = albert.load(folders["plain"]), albert.load(folders["film"])

    def client(path: str) -> Any:
        return hub.InferenceClient(model=f"{server.url}{path}", token="any")

    for path in ("/embed", "/", "/models/plain"):
        assert np.allclose(client(path).feature_extraction(TEXTS[0]), plain.embed(TEXTS[:1], normalize=True), atol=1e-5)
    raw = client("/embed").feature_extraction(TEXTS[0], normalize=False, truncate=True)
    assert np.allclose(raw, plain.embed(TEXTS[:1]), atol=1e-5)
    cosines = client("/similarity").sentence_similarity(TEXTS[0], other_sentences=TEXTS)
    assert np.allclose(cosines, plain.similarity(TEXTS[0], TEXTS), atol=1e-5)
    best = client("/models/film").text_classification(TEXTS[0])
    best = best[0] if isinstance(best, list) else best
    assert best.score == pytest.approx(max(film.classify(TEXTS[0]).probabilities.values()), abs=1e-5)
