"""Connected components of difficult graphs."""

import random
import sys
import types

import hamdex
import pytest

hs = pytest.importorskip(
    "hamdex.spark", reason="no Spark here", exc_type=ImportError
)


def naive(edges):
    """Returns the smallest node of each node's component."""
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
    # Repeated, in both directions, and with a loop.
    frame = spark.createDataFrame([*edges, *((b, a) for a, b in edges)], "a long, b long")
    loop = spark.createDataFrame([(edges[0][0], edges[0][0])], "a long, b long")
    rows = hs.components(frame.unionAll(loop)).collect()
    assert {row.node: row.component for row in rows} == naive(edges)
    assert len(rows) == len(naive(edges))


def test_a_graph_without_edges_has_no_components(spark):
    assert hs.components(spark.createDataFrame([], "a long, b long")).isEmpty()


class Labelling:
    """Fake GraphFrame whose components have arbitrary numbers."""

    def __init__(self, nodes, links):
        assert (nodes.columns, links.columns) == (["id"], ["src", "dst"])
        self.nodes, self.links = nodes, links

    def connectedComponents(self):
        roots = naive([(row.src, row.dst) for row in self.links.collect()])
        rows = [(row.id, hash(roots[row.id]) % 1000 - 7) for row in self.nodes.collect()]
        return self.nodes.sparkSession.createDataFrame(rows, "id long, component long")


def test_graphframes_is_used_if_its_jar_is_installed(spark, monkeypatch):
    edges = [(3, 9), (9, 4), (20, 10), (7, 7), (10, 20)]
    frame = spark.createDataFrame(edges, "a long, b long")
    with pytest.raises(hamdex.UsageError, match="graphframes is not installed"):
        hs.components(frame, graphframes=True)
    monkeypatch.setitem(sys.modules, "graphframes", types.SimpleNamespace(GraphFrame=Labelling))
    with pytest.raises(hamdex.UsageError, match="jar is not on the class path"):
        hs.components(frame, graphframes=True)
    module = sys.modules["hamdex.spark.components"]
    expected = {3: 3, 9: 3, 4: 3, 20: 10, 10: 10}
    found = hs.components(frame)
    assert {row.node: row.component for row in found.collect()} == expected
    monkeypatch.setattr(module, "_missing", lambda spark: None)
    monkeypatch.setattr(module, "_large_star", None)
    found = hs.components(frame)
    assert {row.node: row.component for row in found.collect()} == expected
    with pytest.raises(TypeError):
        hs.components(frame, graphframes=False)
