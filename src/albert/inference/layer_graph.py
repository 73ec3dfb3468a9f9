"""One layer on packed tokens as an ONNX graph, with the inputs of `layer_engine.Layout`.

Legend: T tokens, R tokens that are gone on with, B texts, Q queries and S keys of a row, H hidden.
"""

from __future__ import annotations

from albert.inference.int8 import Form
from albert.inference.onnx_graph import Graph
from albert.model.encoder import Attention, FeedForward


def layer_graph(attention: Attention, ffn: FeedForward, *, int8: Form | None, largest: int) -> bytes:
    """Return the graph: states [T, H] in, states [R, H] out."""
    graph, width = Graph(int8=int8, kept=(), largest=largest), attention.query.in_features
    states = graph.input("states", "float32", ["T", width])
    rows, queries = graph.input("rows", "int64", ["R"]), graph.input("queries", "int64", ["B", "Q"])
    keys, bias = graph.input("keys", "int64", ["B", "S"]), graph.input("bias", "float32", ["B", 1, 1, "S"])
    back = graph.input("back", "int64", ["R"])

    def mix(query: str, key: str, value: str) -> str:
        q, k, v = (graph.add("Gather", x, where) for x, where in ((query, queries), (key, keys), (value, keys)))
        mixed = graph.attend(q, k, v, bias, num_heads=attention.num_heads, width=width)
        return graph.add("Gather", graph.add("Reshape", mixed, graph.constant(-1, width)), back)

    asking = graph.add("Gather", states, rows)
    out = graph.layer(states, attention, ffn, names=("attention", "ffn"), mix=mix, asking=asking)
    graph.named(out, "out")
    return graph.build({"out": ["R", width]}).SerializeToString()
