"""Layers on packed tokens as one ONNX graph, with the inputs of `layer_engine.Layout`; a shared weight is stored once.

Legend: T tokens, R tokens that are gone on with after the last layer, B texts, Q queries and S keys of a row, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from albert.inference.int8 import Form
from albert.inference.onnx_graph import Graph
from albert.model.encoder import Attention, FeedForward

Blocks = Sequence[tuple[Attention, FeedForward]]


def layer_graph(blocks: Blocks, *, int8: Form | None, largest: int) -> bytes:
    """Return the graph of one layer after the other: states [T, H] in, states [R, H] out."""
    graph, attention = Graph(int8=int8, largest=largest), blocks[0][0]
    width, num_heads = attention.query.in_features, attention.num_heads
    states = graph.input("states", "float32", ["T", width])
    keys, bias = graph.input("keys", "int64", ["B", "S"]), graph.input("bias", "float32", ["B", 1, 1, "S"])
    rows, queries = graph.input("rows", "int64", ["R"]), graph.input("queries", "int64", ["B", "Q"])
    back, last_back = graph.input("back", "int64", ["T"]), graph.input("last_back", "int64", ["R"])
    names = {id(block): f"block.{id(block)}" for own in blocks for block in own}
    joined = {id(attention): attention.joined() for attention, _ in blocks}

    def mix(query: str, key: str, value: str, asked: str, back: str) -> str:
        q, k, v = (graph.add("Gather", x, where) for x, where in ((query, asked), (key, keys), (value, keys)))
        mixed = graph.attend(q, k, v, bias, num_heads=num_heads, width=width)
        return graph.add("Gather", graph.add("Reshape", mixed, graph.constant(-1, width)), back)

    for number, (attention, ffn) in enumerate(blocks, 1):
        last = number == len(blocks)
        asked, own_back = (queries, last_back) if last else (keys, back)
        states = graph.layer(
            states,
            attention,
            ffn,
            names=(names[id(attention)], names[id(ffn)]),
            mix=partial(mix, asked=asked, back=own_back),
            joined=joined[id(attention)],
            asking=graph.add("Gather", states, rows) if last else None,
        )
    graph.named(states, "out")
    return graph.build({"out": ["R", width]}).SerializeToString()
