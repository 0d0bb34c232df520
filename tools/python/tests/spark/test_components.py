"""Connected components of graphs that are hard for them."""

import random

import pytest

hs = pytest.importorskip(
    "hamdex.spark", reason="no Spark here", exc_type=ImportError
)


def naive(edges):
    """The smallest node of every component."""
    parents = {}

    def find(node):
        parents.setdefault(node, node)
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    for a, b in edges:
        a, b = sorted((find(a), find(b)))
        parents[b] = a
    return {node: find(node) for node in parents}


def shapes():
    rng = random.Random(3)
    chain = [(at, at + 1) for at in range(200)]
    rng.shuffle(chain)
    return {
        "chain": chain,
        "star": [(500, at) for at in range(300)],
        "circles": [(at, (at + 1) % 10 + at // 10 * 10) for at in range(100)],
        "forest": [(at, rng.randrange(at)) for at in range(1, 400) if at % 7],
        "negative": [(-(1 << 63), (1 << 63) - 1), (5, -5), (-5, -(1 << 63))],
    }


@pytest.mark.parametrize("shape", shapes())
def test_every_node_gets_the_smallest_of_its_component(spark, shape):
    edges = shapes()[shape]
    # Twice, in both directions, and with a loop.
    frame = spark.createDataFrame([*edges, *((b, a) for a, b in edges)], "a long, b long")
    loop = spark.createDataFrame([(edges[0][0], edges[0][0])], "a long, b long")
    rows = hs.components(frame.unionAll(loop)).collect()
    assert {row.node: row.component for row in rows} == naive(edges)
    assert len(rows) == len(naive(edges))


def test_a_graph_without_edges_has_no_components(spark):
    assert hs.components(spark.createDataFrame([], "a long, b long")).isEmpty()
