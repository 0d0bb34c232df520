"""The index: durable, concurrent, and with the same files as that of the command line."""

import json
import os
import subprocess
import threading

import hamdex
import pytest

from conftest import jsonl, made

pa = pytest.importorskip("pyarrow")

SUNNY = "sunny days are here again, said the farmers at the market"
SUNNY_TOO = "sunny days are here again, said the farmers of the market"
BUDGET = "the council voted on the budget of the library and the museum"


def test_documents_are_found_by_text_and_by_fingerprint(tmp_path):
    with hamdex.Index.create(tmp_path / "idx", pipeline="post") as index:
        assert (index.bits, index.distance, index.keeps_features) == (64, 9, False)
        assert index.insert("sunny", SUNNY) == 0
        assert index.insert(["budget", 7, b"\x00odd"], [BUDGET, 0xFF, 0xFE]) == 0
        assert index.insert("sunny", SUNNY) == 1
        (found,) = index.search(SUNNY_TOO, distance=12)
        assert (found.key, found.similarity) == ("sunny", None) and found.distance <= 12
        assert found.fingerprint == index.get("sunny") == hamdex.Pipeline("post").fingerprint(SUNNY)
        near = index.search(0xFF, distance=1)
        assert [(m.key, m.distance) for m in near] == [(7, 0), (b"\x00odd", 1)]
        assert [m.key for m in index.search(0xFF, distance=1, limit=1)] == [7]
        answers = index.search_batch([BUDGET, SUNNY, 0x0F0F0F0F], distance=0)
        assert [[m.key for m in answer] for answer in answers] == [["budget"], ["sunny"], []]
        assert len(index) == 4 and "sunny" in index and "rain" not in index
        assert index.remove("rain") == 0 and index.remove(["sunny", 7]) == 2
        assert len(index) == 2 and index.check() == []
    with pytest.raises(hamdex.UsageError, match="idx is closed"):
        index.search(SUNNY)
    with hamdex.Index.open(tmp_path / "idx") as index:
        assert index.get("budget") is not None and index.get("sunny") is None
        assert index.pipeline == hamdex.Pipeline("post").descriptor


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_every_width_stores_and_finds(tmp_path, bits):
    with hamdex.Index.create(tmp_path / "idx", bits=bits, distance=2) as index:
        top = 1 << (bits - 1)
        index.insert(["a", "b"], [top, top | 0b111])
        assert [m.key for m in index.search(top | 1)] == ["a", "b"]
        assert index.search(top)[0].fingerprint == top
        with pytest.raises(hamdex.UsageError, match=f"more than {bits} bits|128"):
            index.search(1 << bits)
        with pytest.raises(hamdex.UsageError, match="fingerprints only"):
            index.search(SUNNY)


def test_only_new_documents_are_inserted(tmp_path):
    with hamdex.Index.create(tmp_path / "idx", pipeline="post", keep_features=True) as index:
        assert index.insert_if_new("a", SUNNY) is None
        kept_out = index.insert_if_new("b", SUNNY_TOO)
        assert kept_out.key == "a" and len(index) == 1
        outcome = index.insert_if_new(["c", "d"], [BUDGET, BUDGET], verify="jaccard:0.9")
        assert outcome[0] is None and outcome[1].key == "c" and outcome[1].similarity == 1.0
        (found,) = index.search(SUNNY_TOO, verify="jaccard:0.5")
        assert 0.5 <= found.similarity < 1
        assert index.search(SUNNY_TOO, verify="jaccard:0.99") == []
        with pytest.raises(hamdex.UsageError, match="no text"):
            index.search(0xFF, verify="jaccard:0.5")
        with pytest.raises(hamdex.UsageError, match="compares texts"):
            index.search(SUNNY, verify="edit:0.9")


def test_a_snapshot_never_changes(tmp_path):
    with hamdex.Index.create(tmp_path / "idx", pipeline="post") as index:
        index.insert("a", SUNNY)
        before = index.snapshot()
        index.insert("b", SUNNY)
        index.remove("a")
        assert [m.key for m in before.search(SUNNY)] == ["a"]
        assert [m.key for m in index.search(SUNNY)] == ["b"]
        assert (len(before), "b" in before, before.get("a")) == (1, False, index.get("b"))
        assert [[m.key for m in found] for found in before.search_batch([SUNNY])] == [["a"]]


def test_tables_are_built_and_merged(tmp_path, posts):
    table = pa.table(posts)
    index = hamdex.Index.build(tmp_path / "idx", table.slice(0, 2000), keep_features=True)
    assert index.built["documents"] == len(index) == 2000 and index.keeps_features
    index.close()
    more = made(100, seed=99)
    more["id"] = ["p0", "p1", *range(100, 197), "p1"]
    more["id"] = [str(key) for key in more["id"]]
    with hamdex.Index.build(tmp_path / "idx", more_table(more), on_repeat="first") as index:
        assert index.built["replaced"] == 2 and index.built["repeated"] == 1
        assert len(index) == 2000 + 97 and index.check() == []
        (first, *_) = index.search(posts["text"][7], distance=0)
        assert first.key == "p7"
    numbered = hamdex.Index.build(tmp_path / "numbers", posts["text"], plan="auto")
    assert numbered.search(posts["text"][5], distance=0)[0].key <= 5
    assert numbered.get(5) is not None
    with pytest.raises(hamdex.UsageError, match='created with pipeline'):
        numbered.close()
        hamdex.Index.build(tmp_path / "numbers", posts["text"], pipeline="page")


def more_table(columns):
    return pa.table({"id": columns["id"], "text": columns["text"]})


def test_the_command_line_builds_the_same_index(tmp_path, posts, program):
    source = jsonl(tmp_path / "rows.jsonl", posts)
    built = [program, "build", str(tmp_path / "theirs"), str(source), "--quiet"]
    subprocess.run(built, check=True, capture_output=True)
    hamdex.Index.build(tmp_path / "ours", pa.table(posts)).close()

    def export(name):
        command = [program, "export", str(tmp_path / name), "--quiet"]
        return subprocess.run(command, check=True, capture_output=True).stdout

    assert export("ours") == export("theirs") and export("ours").count(b"\n") == 3001
    stats = [program, "stats", str(tmp_path / "ours"), "--json", "--quiet"]
    header = json.loads(subprocess.run(stats, check=True, capture_output=True).stdout)
    with hamdex.Index.open(tmp_path / "theirs", read_only=True) as theirs:
        assert (header["distance"], header["pipeline"]) == (theirs.distance, theirs.pipeline)


def test_searches_equal_the_linear_scan(tmp_path, posts):
    pipeline = hamdex.Pipeline("post")
    prints = hamdex.fingerprint(posts["text"], pipeline=pipeline)
    with hamdex.Index.build(tmp_path / "idx", pa.table(posts), pipeline=pipeline) as index:
        asked = posts["text"][::100]
        for text, found in zip(asked, index.search_batch(asked, distance=11)):
            own = pipeline.fingerprint(text)
            near = {posts["id"][n] for n, p in enumerate(prints) if (p ^ own).bit_count() <= 11}
            assert {m.key for m in found} == near
            distances = [m.distance for m in found]
            assert distances == sorted(distances)


def test_threads_write_and_search_together(tmp_path):
    with hamdex.Index.create(tmp_path / "idx", pipeline="post") as index:
        index.insert("a", SUNNY)
        missed = []

        def search():
            for _ in range(200):
                missed.extend([] if index.search(SUNNY, distance=0) else ["a"])

        def write(name):
            for n in range(50):
                index.insert(f"{name}{n}", n, synced=False)

        threads = [threading.Thread(target=search)]
        threads += [threading.Thread(target=write, args=(name,)) for name in "xyz"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert missed == [] and len(index) == 151
        index.flush()


def test_exceptions_distinguish_who_has_to_act(tmp_path):
    with pytest.raises(hamdex.UsageError, match="holds no hamdex index"):
        hamdex.Index.open(tmp_path / "absent")
    with hamdex.Index.create(tmp_path / "idx") as index:
        with pytest.raises(OSError, match="in use by another process"):
            hamdex.Index.open(tmp_path / "idx")
        with pytest.raises(ValueError, match="already holds"):
            hamdex.Index.create(tmp_path / "idx")
        with pytest.raises(hamdex.UsageError, match="2 keys for 1 values"):
            index.insert(["a", "b"], [1])
        for key, words in [("", "empty"), ("x" * 1025, "1025 bytes"), (1.5, "not float")]:
            with pytest.raises(hamdex.UsageError, match=words):
                index.insert(key, 1) if key != 1.5 else index.get(key)
        with pytest.raises(hamdex.UsageError, match="distance 17"):
            index.search(1, distance=17)
    with hamdex.Index.open(tmp_path / "idx", read_only=True) as index:
        with pytest.raises(hamdex.UsageError, match="read-only"):
            index.insert("a", 1)
    (tmp_path / "idx" / "CURRENT").write_text("no such manifest\n")
    with pytest.raises(hamdex.DamageError):
        hamdex.Index.open(tmp_path / "idx")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of Unix")
def test_a_closed_index_can_be_reopened_while_a_forked_child_runs(tmp_path):
    index = hamdex.Index.create(tmp_path / "idx")
    index.insert("a", 0xFF)
    waiting, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(telling)
        os.read(waiting, 1)
        os._exit(0)
    try:
        with pytest.raises(hamdex.StorageError, match="in use by another process"):
            hamdex.Index.open(tmp_path / "idx")
        index.close()
        with hamdex.Index.open(tmp_path / "idx") as again:
            assert again.get("a") == 0xFF
    finally:
        os.close(waiting)
        os.close(telling)
        os.waitpid(child, 0)


def test_the_whole_index_can_be_held_in_memory(tmp_path, posts):
    hamdex.Index.build(tmp_path / "idx", pa.table(posts)).close()
    with hamdex.Index.open(tmp_path / "idx") as index:
        with pytest.raises(ValueError, match="fit"):
            index.save_resident(100)
        saved = index.save_resident(1 << 28)
    assert saved == (tmp_path / "idx" / "hamdex.resident").stat().st_size
    with hamdex.Index.open(tmp_path / "idx", resident=1 << 28) as index:
        assert index.search(posts["text"][3], distance=0)[0].distance == 0
