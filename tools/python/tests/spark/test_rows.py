"""Rows of a frame: each is kept or removed once, for any ids."""

import importlib

import pytest

import hamdex

hs = pytest.importorskip("hamdex.spark", reason="no Spark here", exc_type=ImportError)

RAIN = "it will rain tomorrow so take a coat and an umbrella with you"
BOOK = "just finished reading a wonderful book about the deep sea"

#: Near the first one by fingerprint, but with a different text.
FAR = "it will rain tomorrow so take a coat and or one scarf for them"


@pytest.fixture
def rows(spark):
    rows = [
        ("b", RAIN, 1),
        ("a", RAIN, 2),
        ("a", RAIN, 3),
        (None, RAIN, 4),
        ("c", BOOK, 5),
        ("c", None, 6),
        (None, None, 7),
        ("d", " ", 8),
        ("e", "...", 9),
        ("a", BOOK, 10),
    ]
    # One partition, so that row numbers follow the order of the rows.
    return spark.createDataFrame(rows, "id string, text string, n long").coalesce(1)


@pytest.mark.parametrize("verify", ["none", "edit:0.9"])
@pytest.mark.parametrize(
    ("keep", "kept"),
    [("first", [2, 6, 7, 8, 9, 10]), ("newest:n", [4, 6, 7, 8, 9, 10])],
)
def test_ids_are_labels_and_each_row_is_kept_or_removed_once(rows, verify, keep, kept):
    result = hs.dedup(rows, "text", "id", 3, verify=verify, keep=keep, pipeline="post")
    assert sorted(row.n for row in result.kept.collect()) == kept
    assert result.kept.columns == ["id", "text", "n"]
    removed = [(row.id, row.kept_id) for row in result.duplicates.collect()]
    assert len(removed) == 4
    assert {kept_id for _, kept_id in removed} == {"a" if keep == "first" else None, "a"}


def test_the_counts_of_a_report_match_the_rows(spark, rows, tmp_path):
    rows.write.parquet(str(tmp_path / "in"))
    summary = hs.dedup_file(
        spark, tmp_path / "in", tmp_path / "out", distance=3, pipeline="post",
        report=tmp_path / "report.html",
    )  # fmt: skip
    counts = ("rows", "documents", "kept", "removed", "rejects", "clusters")
    assert [summary[name] for name in counts] == [10, 10, 6, 4, 0, 2]
    assert summary["not_compared"] == {"null text": 2, "empty text": 1, "no features": 1}
    assert summary["settings"]["verification"] == "edit:0.8"
    assert sum(group["size"] for group in summary["largest"]) == 6
    assert spark.read.parquet(str(tmp_path / "out")).count() == 6


@pytest.mark.parametrize(
    ("pipeline", "check"),
    [("page", "edit:0.88"), ("auto", "edit:0.85"), ("post", "edit:0.8"), ("code", "jaccard:0.8")],
)
def test_the_default_verification_depends_on_the_pipeline(pipeline, check):
    from hamdex.spark.dedup import verification

    assert verification(None, "text", pipeline, 64) == check
    assert verification("none", "text", pipeline, 64) == "none"
    assert verification(None, None, pipeline, 64) == "none"


def test_a_distance_does_not_disable_the_verification(spark):
    frame = spark.createDataFrame([(1, RAIN), (2, FAR)], "id long, text string")
    near = hs.dedup(frame, "text", "id", 14, pipeline="post")
    assert near.kept.count() == 2 and "similarity" in near.duplicates.columns
    assert hs.dedup(frame, "text", "id", 14, pipeline="post", verify="none").kept.count() == 1


def test_sources_above_the_maximum_are_counted_together(rows, spark, monkeypatch):
    values = ["x", None, "y", " ", "z", "x", "y", "w"]
    data = [(n, RAIN if n % 2 else BOOK, value) for n, value in enumerate(values)]
    frame = spark.createDataFrame(data, "id long, text string, host string")

    def counted(**options):
        found = hs.dedup(
            frame, "text", "id", 3, pipeline="post", verify="none", source_field="host", **options
        )
        assert found.warnings == []
        return {row["name"]: (row["documents"], row["kept"]) for row in found.sources}

    assert counted() == {"x": (2, 1), "(none)": (2, 1), "y": (2, 0), "z": (1, 0), "w": (1, 0)}
    monkeypatch.setattr(hamdex._hamdex, "_OTHER_SOURCES", ("(others)", 2))
    assert counted() == {"x": (2, 1), "(none)": (2, 1), "(others)": (4, 0)}
    assert counted(unique_by="host")["(others)"] == (4, 0)
    with pytest.raises(hamdex.DataError, match="no row has a value"):
        hs.dedup(frame.filter("id = 1"), "text", "id", 3, pipeline="post", source_field="host")
    with pytest.raises(hamdex.UsageError, match='no column "from"'):
        hs.dedup(frame, "text", "id", 3, pipeline="post", source_field="from")


def test_tasks_do_not_return_texts(rows):
    plan = hs.fingerprints(rows, "text", "id")._jdf.queryExecution().optimizedPlan().toString()
    (task,) = [line for line in plan.splitlines() if "MapInArrow" in line]
    output = task[task.rindex("["):]
    assert "fingerprint" in output and "text" not in output


def test_a_secret_reaches_the_workers(rows, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("6f1d0c9be2a8475393d4c07a51fe286b")
    secret.chmod(0o600)
    pipeline = hamdex.Pipeline("post", stop_words="builtin", seed_file=secret)
    found = hs.fingerprints(rows, "text", "id", pipeline=pipeline).collect()
    ours = {pipeline.fingerprint(text) for text in (RAIN, BOOK)}
    assert {row.fingerprint % (1 << 64) for row in found} == ours


def test_many_clusters_are_processed_in_one_call(spark, monkeypatch):
    import pyarrow as pa

    dedup = importlib.import_module("hamdex.spark.dedup")
    monkeypatch.setattr(dedup, "ROWS_PER_CALL", 8)
    components = [1] * 3 + [2] * 2 + [3] * 20 + [4] * 4 + [5]
    table = pa.table({"component": components, "n": range(len(components))})
    parts = list(dedup._whole(iter(table.to_batches(max_chunksize=3))))
    assert pa.concat_tables(parts).equals(table) and 1 < len(parts) < 5
    seen = [set(part["component"].to_pylist()) for part in parts]
    assert sum(map(len, seen)) == 5


def test_texts_are_found_in_structs_and_in_several_columns(spark):
    rows = [(1, ("x", RAIN), BOOK), (2, ("y", RAIN), None), (3, ("z", None), RAIN)]
    frame = spark.createDataFrame(rows, "id long, data struct<title string, text string>, more string")

    def kept(field):
        result = hs.dedup(frame, field, "id", 3, pipeline="post", verify="none")
        return sorted(row.id for row in result.kept.collect())

    assert kept("data.text") == [1, 3]
    assert kept("data.text, more") == [1, 2]
    assert kept("more") == [1, 2, 3]
    for field in ("data.none", "none", "more.text"):
        with pytest.raises(hamdex.UsageError, match="there is no column"):
            kept(field)


def test_texts_of_an_array_are_joined(spark):
    chat = [("user", "rain"), ("bot", RAIN)]
    rows = [
        (1, chat, [["rain"], None, [RAIN]], [1], [[("t", "rain"), ("i", None)], [("t", RAIN)]]),
        (2, chat, [["rain", RAIN]], [2], [[("t", "rain"), ("t", RAIN)]]),
        (3, chat[::-1], [[None, RAIN], ["rain"]], [3], [[("t", RAIN)], [("t", "rain")]]),
        (4, [("user", None)], [[]], [4], [[("i", None)]]),
        (5, None, None, None, None),
    ]
    of = (
        "id long, m array<struct<role string, content string>>, p array<array<string>>, "
        "n array<int>, q array<array<struct<type string, text string>>>"
    )
    frame = spark.createDataFrame(rows, of)

    def kept(field):
        options = {"pipeline": "page", "verify": "edit:1", "drop_empty": True}
        result = hs.dedup(frame, field, "id", 0, **options)
        return sorted(row.id for row in result.kept.collect())

    assert kept("m.content") == [1, 3]
    assert kept("p") == [1, 3]
    assert kept("q") == [1, 3]
    assert kept("m.role") == [1, 3, 4]
    assert kept("m.content, p") == [1, 3]
    for field in ("m.none", "m", "n", "p.x"):
        with pytest.raises(hamdex.UsageError, match="column"):
            kept(field)


@pytest.mark.parametrize("verify", ["none", "edit:0.9"])
def test_the_newest_row_is_found_by_value_and_not_as_text(spark, verify):
    times = ["2024-05-06T10:00:00+09:00", "2024-05-06T05:00:00Z", "9", "10", None]
    rows = [(n, RAIN, time) for n, time in enumerate(times)]
    frame = spark.createDataFrame(rows, "id long, text string, time string")

    def kept(frame):
        result = hs.dedup(
            frame, "text", "id", 3, pipeline="post", verify=verify, keep="newest:time"
        )
        return [row.id for row in result.kept.collect()]

    assert kept(frame) == [1] and kept(frame.filter("id > 1")) == [3]
    with pytest.raises(hamdex.DataError, match="no row has a value"):
        kept(frame.filter("id = 4"))


def test_one_row_of_equal_values_is_kept_and_empty_rows_are_dropped_on_request(spark, rows):
    def kept(**options):
        result = hs.dedup(rows, "text", "id", 3, pipeline="post", verify="none", **options)
        return sorted(row.n for row in result.kept.collect()), result

    # Of a: 2, 3 and 10, of c: 5 and 6; then 2 and 10 are duplicates of 1 and 5.
    found, result = kept(unique_by="id", keep="newest:n")
    assert found == [4, 6, 7, 8, 9, 10] and result.duplicates.count() == 1
    found, _ = kept(drop_empty=True)
    assert found == [2, 10]
    found, _ = kept(drop_empty=True, unique_by="id")
    assert found == [2, 5]
