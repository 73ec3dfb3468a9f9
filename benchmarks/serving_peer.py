"""The server that people write in an afternoon, FastAPI and transformers: the peer of `albert serve`.

python benchmarks/serving_peer.py FOLDER
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class Texts(BaseModel):
    """A request."""

    inputs: list[list[str]]


def build(folder: str) -> FastAPI:
    """Return the application; FastAPI runs plain functions in threads."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    app = FastAPI()

    @app.post("/predict")
    def predict(body: Texts) -> list[list[dict[str, Any]]]:
        texts = [own[0] for own in body.inputs]
        fed = tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
        with torch.inference_mode():
            shares = model(**fed).logits.softmax(-1)
        names = model.config.id2label
        return [[{"label": names[i], "score": score} for i, score in enumerate(row)] for row in shares.tolist()]

    return app


if __name__ == "__main__":
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build(sys.argv[1]), log_level="warning", access_log=False))
    print(json.dumps({"url": f"http://127.0.0.1:{taken.getsockname()[1]}"}), flush=True)
    server.run([taken])
