"""The cluster returns exactly the results of one machine, also if a worker is killed."""

import json
import threading
import time

import pytest

from .conftest import DOCUMENTS, SETTINGS, UNVERIFIED, documents, frame, write

hs = pytest.importorskip(
    "hamdex.spark", reason="no Spark here", exc_type=ImportError
)

#: With more documents only clusters are compared.
small = pytest.mark.skipif(DOCUMENTS > 100_000, reason="compared in the short form")


def grouped(rows):
    """Returns the members and the name of each cluster."""
    found = {}
    for row in rows:
        found.setdefault(row.cluster, set()).add(row.id)
    return found


def wanted(lines):
    groups = [set(json.loads(line)["ids"]) for line in lines]
    return {min(group): group for group in groups}


def test_clusters_equal_those_of_one_machine(spark, corpus, hamdex_lines):
    counts = {}
    rows = hs.clusters(frame(spark, corpus), "text", "id", 3, counts=counts, **SETTINGS).collect()
    found = grouped(rows)
    assert found == wanted(hamdex_lines("clusters", corpus, "-k", 3, *UNVERIFIED))
    # The dense group must be a single cluster.
    assert max(map(len, found.values())) > DOCUMENTS // 20
    # Among a million short texts most near ones belong to one dense group of unrelated texts.
    assert len(found) > DOCUMENTS // 200
    assert all(row.size == len(found[row.cluster]) for row in rows)
    assert counts["levels"] == 1 and counts["heavy"] == 0 and counts["pairs"] > 0


def test_split_groups_do_not_change_the_result(spark, corpus, hamdex_lines):
    counts, limit = {}, DOCUMENTS // 200
    near = hs.clusters(frame(spark, corpus), "text", "id", 3, limit=limit, counts=counts, **SETTINGS)
    found = grouped(near.collect())
    assert found == wanted(hamdex_lines("clusters", corpus, "-k", 3, *UNVERIFIED))
    assert counts["heavy"] > 0 and counts["levels"] > 1


@small
@pytest.mark.parametrize(("bits", "distance", "more_than"), [(32, 2, 5), (128, 8, 50)])
def test_other_widths_and_distances(spark, tmp_path, hamdex_lines, bits, distance, more_than):
    path = write(tmp_path / "rows.jsonl", documents(2000, 50, 50, seed=bits))
    near = hs.clusters(frame(spark, path), "text", "id", distance, bits=bits, limit=40, **SETTINGS)
    options = ["-k", distance, "--bits", bits, *UNVERIFIED]
    found = grouped(near.collect())
    assert found == wanted(hamdex_lines("clusters", path, *options))
    assert len(found) > more_than


@small
@pytest.mark.parametrize(
    ("verify", "distance", "keep"),
    [
        ("none", 3, "first"),
        ("none", 3, "longest"),
        ("edit:0.9", 10, "first"),
        ("contains:0.6", 10, "longest"),
    ],
)
def test_dedup_equals_that_of_one_machine(spark, tmp_path, hamdex_lines, verify, distance, keep):
    path, out = write(tmp_path / "rows.jsonl", documents(3000, 60, 60)), tmp_path / "out"
    result = hs.dedup(
        frame(spark, path), "text", "id", distance, verify=verify, keep=keep, **SETTINGS
    )
    options = ["-k", distance, "--verify", verify, "--keep", keep, "--pipeline", "post"]
    hamdex_lines("dedup", path, "-o", out, *options)
    kept = [json.loads(line) for line in (out / "kept.jsonl").open()]
    rows = sorted((row.id, row.text) for row in result.kept.collect())
    assert rows == sorted((row["id"], row["text"]) for row in kept)
    removed = [json.loads(line) for line in (out / "duplicates.jsonl").open()]
    rows = {(row.id, row.kept_id, row.distance) for row in result.duplicates.collect()}
    assert rows == {(row["id"], row["kept_id"], row["distance"]) for row in removed}
    assert len(rows) > 200


@small
def test_each_pair_is_returned_once(spark, tmp_path, hamdex_lines):
    path = write(tmp_path / "rows.jsonl", documents(3000, 60, 60))
    found = hs.pairs(frame(spark, path), "text", "id", 4, limit=30, **SETTINGS).collect()
    lines = [line.split("\t") for line in hamdex_lines("pairs", path, "-k", 4, *UNVERIFIED)]
    pairs = sorted((*sorted([a, b]), int(distance)) for a, b, distance in lines)
    assert sorted((row.id_a, row.id_b, row.distance) for row in found) == pairs
    assert len({distance for _, _, distance in pairs}) == 5


@small
def test_search_returns_the_matches_of_an_index(spark, tmp_path, hamdex_lines):
    rows = documents(3000, 30, 60)
    stored = write(tmp_path / "stored.jsonl", rows[:2500])
    asked = write(tmp_path / "asked.jsonl", [(f"q{id}", text) for id, text in rows[2300:]])
    found = hs.search(
        frame(spark, stored), frame(spark, asked), "text", "id", 5, limit=50, **SETTINGS
    )
    hamdex_lines("build", tmp_path / "idx", stored, "--pipeline", "post", "-k", 3)
    lines = hamdex_lines("query", tmp_path / "idx", asked, "-k", 5)
    answers = [json.loads(line) for line in lines]
    answers = sorted((row["query"], row["id"], row["distance"]) for row in answers)
    assert sorted((row.query, row.id, row.distance) for row in found.collect()) == answers
    assert len(answers) > 500


@small
@pytest.mark.parametrize("bits", [64, 128])
def test_shards_build_the_index_of_one_machine(spark, tmp_path, hamdex_lines, bits):
    path = write(tmp_path / "rows.jsonl", documents(5000, 100, 100))
    shards = hs.build_index(
        frame(spark, path), tmp_path / "shards", "text", "id", bits=bits, partitions=3, **SETTINGS
    )
    assert (shards.documents, shards.files) >= (5000, 3)
    hamdex_lines("build", tmp_path / "idx", "--from-shards", shards.path)
    hamdex_lines("check", tmp_path / "idx", "--deep")
    hamdex_lines("build", tmp_path / "one", path, "--pipeline", "post", "-k", 3, "--bits", bits)
    export = [hamdex_lines("export", tmp_path / name) for name in ("idx", "one")]
    assert export[0] == export[1] and len(export[0]) == 5001
    answers = [hamdex_lines("query", tmp_path / name, path, "-k", 6) for name in ("idx", "one")]
    assert answers[0] == answers[1]


def test_a_killed_worker_changes_nothing(started, spark, corpus, hamdex_lines):
    checkpoints = started.directory / "checkpoints"
    before = set(checkpoints.rglob("rdd-*"))
    found = {}

    def run():
        rows = hs.clusters(frame(spark, corpus), "text", "id", 3, **SETTINGS).collect()
        found["rows"], found["at"] = rows, time.monotonic()

    work = threading.Thread(target=run, daemon=True)
    work.start()
    # The second checkpoint is after the fingerprints and before the groups.
    while len(set(checkpoints.rglob("rdd-*")) - before) < 2 and work.is_alive():
        time.sleep(0.05)
    assert work.is_alive(), "the work was done before the worker was killed"
    started.kill_worker(0)
    killed = time.monotonic()
    work.join()
    started.add_worker()
    assert found["at"] > killed
    lines = hamdex_lines("clusters", corpus, "-k", 3, *UNVERIFIED)
    assert grouped(found["rows"]) == wanted(lines)
