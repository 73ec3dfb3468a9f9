"""A Ray cluster of two nodes on this machine, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Start two nodes of one CPU each, every one with its own scheduler and object store."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    options = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    nodes = cluster_utils.Cluster(initialize_head=True, head_node_args=options)
    nodes.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    nodes.wait_for_nodes()
    try:
        yield nodes
    finally:
        nodes.shutdown()
