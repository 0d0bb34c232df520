"""Invalid calls are rejected before a job starts."""

import pytest

import hamdex

hs = pytest.importorskip(
    "hamdex.spark", reason="no Spark here", exc_type=ImportError
)


@pytest.fixture
def posts(spark):
    rows = [(1, "one text of a few words", 7, "x"), (2, None, 8, "y"), (3, "", None, "z")]
    return spark.createDataFrame(rows, "id long, text string, print long, other string")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda df: hs.clusters(df, "body", "id", 3), 'no column "body" among id, text'),
        (lambda df: hs.clusters(df, "text", "id", 17), "distance 17 exceeds 16"),
        (lambda df: hs.clusters(df, "text", "id", 3, bits=65), "supported are 32, 64 and 128"),
        (lambda df: hs.clusters(df, None, "id", 3), "pass a text_column"),
        (lambda df: hs.clusters(df, None, "id", 3, fingerprint_column="other"), "is string"),
        (lambda df: hs.clusters(df, "text", "id", 3, pipeline="poem"), "poem"),
        (lambda df: hs.dedup(df, "text", "id", 3, keep="last"), 'keep is "last"'),
        (lambda df: hs.dedup(df, "text", "id", 3, keep="newest:when"), 'no column "when"'),
        (
            lambda df: hs.dedup(df, None, "id", 3, fingerprint_column="print", verify="edit:0.9"),
            "compares texts",
        ),
        (lambda df: hs.build_index(df, "/", "text", "id"), "is not empty"),
        (lambda df: hs.build_index(df, "/absent/x", "text", "id", plan="9x9"), "plan 9x9"),
    ],
)
def test_invalid_calls_are_rejected_with_the_reason(posts, call, message):
    with pytest.raises(hamdex.UsageError, match=message):
        call(posts)


def test_rows_without_a_text_or_features_have_no_fingerprint(posts):
    assert [row.id for row in hs.fingerprints(posts, "text", "id").collect()] == [1]
    near = hs.clusters(posts, None, "id", 4, fingerprint_column="print").collect()
    assert {(row.id, row.cluster, row.size) for row in near} == {(1, 1, 2), (2, 1, 2)}


def test_spark_connect_is_rejected():
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    frame = type("DataFrame", (), {"sparkSession": kind(), "columns": ["id", "text"]})()
    for call in [
        lambda: hs.dedup(frame, "text", "id", 3),
        lambda: hs.clusters(frame, "text", "id", 3),
        lambda: hs.fingerprints(frame, "text", "id"),
        lambda: hs.links(frame, 3),
        lambda: hs.components(frame),
        lambda: hs.dedup_file(kind(), "a.parquet", "b.parquet", distance=3),
    ]:
        with pytest.raises(hamdex.UsageError, match="Spark Connect"):
            call()


def test_a_session_without_checkpoints_is_rejected_with_the_remedy(posts, monkeypatch):
    context = type(posts.sparkSession.sparkContext)
    monkeypatch.setattr(context, "getCheckpointDir", lambda self: None)
    with pytest.raises(hamdex.UsageError, match="setCheckpointDir"):
        hs.clusters(posts, "text", "id", 3)


def test_repeated_documents_fail_an_index_build(spark, tmp_path):
    rows = [("a", "one text of a few words"), ("a", "another text of other words")]
    twice = spark.createDataFrame(rows, "id string, text string")
    with pytest.raises(Exception, match="document a comes twice"):
        hs.build_index(twice, tmp_path / "shards", "text", "id", partitions=1)
