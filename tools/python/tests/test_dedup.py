"""Deduplication: the rows of the command line, in the input's type."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import hamdex
import pytest

from conftest import made

pa = pytest.importorskip("pyarrow")


def rows(table):
    return pa.table(table).to_pylist()


def agree(result, files, settings=True):
    """Asserts that the package returns everything that the command line wrote."""
    kept = result.kept.select([c for c in result.kept.column_names])
    assert kept.to_pylist() == files["kept"]
    # Files count lines from 1 and tables count rows from 0.
    duplicates = rows(result.duplicates)
    for row, expected in zip(duplicates, files["duplicates"], strict=True):
        for place, line in [("row", expected.pop("at")), ("kept_row", expected.pop("kept_at"))]:
            assert line.endswith(f"rows.jsonl:{row.pop(place) + 1}")
    assert duplicates == files["duplicates"]
    clusters = rows(result.clusters)
    assert [(c["cluster"], c["size"], c["ids"]) for c in clusters] == [
        (c["cluster"], c["size"], c["ids"]) for c in files["clusters"]
    ]
    assert [c["diameter"] for c in clusters] == [c.get("diameter") for c in files["clusters"]]
    for name in ["documents", "kept", "removed", "clusters", "rejects"]:
        assert result.report[name] == files["report"][name], name
    for name in ["bits", "distance", "verification", "verified_with_kept", "pipeline", "keep"]:
        assert result.report["settings"][name] == files["report"]["settings"][name], name
    assert result.report["advice"] == files["report"]["advice"]
    # Without a field files are sources; tables have none.
    if result.report["sources"]:
        assert result.report["sources"] == files["report"]["sources"]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ([], {}),
        (["-k", "3"], {"distance": 3}),
        (["--verify", "jaccard:0.7"], {"verify": "jaccard:0.7"}),
        (["-k", "10", "--verify", "zhou:3,2.4"], {"distance": 10, "verify": "zhou:3,2.4"}),
        (["--pipeline", "page"], {"pipeline": "page"}),
        (["--keep", "longest"], {"keep": "longest"}),
        (["--keep", "newest:date"], {"keep": "newest:date"}),
        (["--keep", "best:date"], {"keep": "best:date"}),
        (["--source-field", "date"], {"source_field": "date"}),
        (["--verify", "contains:0.8"], {"verify": "contains:0.8"}),
        (
            ["-k", "16", "--verify", "contains:0.7", "--keep", "newest:date"],
            {"distance": 16, "verify": "contains:0.7", "keep": "newest:date"},
        ),
        (["--bits", "32"], {"bits": 32}),
        (["--bits", "128", "--verify-chain"], {"bits": 128, "verify_chain": True}),
    ],
)
def test_the_command_line_keeps_the_same_rows(posts, cli, options, given):
    agree(hamdex.dedup(pa.table(posts), **given), cli(posts, *options))


def test_a_sample_of_many_rows_equals_that_of_the_command_line(cli):
    many = made(6000, seed=5)
    # The first rows are long, so a sample of them alone has no short text.
    many["text"] = [text * 9 if n < 900 else text for n, text in enumerate(many["text"])]
    result = hamdex.dedup(pa.table(many))
    agree(result, cli(many))
    assert 0.5 < result.report["advice"]["short_share"] < 1


def test_ids_are_labels_of_any_layout_or_row_numbers(posts):
    texts = posts["text"][:500]
    plain = hamdex.dedup(texts)
    expected = [(row["id"], row["kept_id"]) for row in rows(plain.duplicates)]
    assert expected
    numbers = pa.array(range(500))
    for ids in [
        numbers,
        numbers.cast(pa.uint16()),
        pa.array([f"{n}" for n in range(500)]),
        pa.array([f"{n}" for n in range(500)]).dictionary_encode(),
        pa.array([f"{n}" for n in range(500)], pa.string_view()),
    ]:
        result = hamdex.dedup(pa.table({"id": ids, "text": texts}))
        found = [(int(row["id"]), int(row["kept_id"])) for row in rows(result.duplicates)]
        assert found == expected, ids.type
    missing = hamdex.dedup(pa.table({"id": pa.array(["a", None, None]), "text": ["x y z w"] * 3}))
    assert rows(missing.duplicates)[0]["kept_id"] == "a"


@pytest.mark.parametrize(
    "kind", ["string", "large_string", "string_view", "dictionary", "chunked", "sliced"]
)
def test_columns_of_every_layout_are_texts(posts, kind):
    texts = posts["text"][:800]
    expected = hamdex.dedup(texts).mask
    column = {
        "string": lambda: pa.array(texts, pa.string()),
        "large_string": lambda: pa.array(texts, pa.large_string()),
        "string_view": lambda: pa.array(texts, pa.string_view()),
        "dictionary": lambda: pa.array(texts).dictionary_encode(),
        "chunked": lambda: pa.chunked_array([texts[:1], [], texts[1:300], texts[300:]]),
        "sliced": lambda: pa.array(["x", *texts, "y"]).slice(1, len(texts)),
    }[kind]()
    table = pa.table({"other": range(len(texts)), "text": column})
    result = hamdex.dedup(table)
    assert result.mask == expected
    assert result.kept.schema == table.schema
    assert result.kept["other"].to_pylist() == [n for n, keep in enumerate(expected) if keep]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()])
def test_record_batches_stay_record_batches(posts, kind):
    (batch,) = pa.table({"n": range(500), "text": pa.array(posts["text"][:500], kind)}).to_batches()
    result = hamdex.dedup(batch)
    assert isinstance(result.kept, pa.RecordBatch) and result.kept.schema == batch.schema
    assert result.kept.to_pylist() == [row for row, keep in zip(batch.to_pylist(), result.mask) if keep]
    assert hamdex.dedup(batch.slice(0, 0)).kept.equals(batch.slice(0, 0))


def test_empty_tables_are_accepted_and_tables_of_nulls_are_rejected():
    empty = hamdex.dedup(pa.table({"text": pa.array([], pa.string())}))
    assert (len(empty.kept), len(rows(empty.duplicates)), empty.report["documents"]) == (0, 0, 0)
    for column in [pa.nulls(3), pa.array([None] * 3, pa.string()).dictionary_encode()]:
        with pytest.raises(hamdex.DataError, match="3 null text"):
            hamdex.dedup(pa.table({"text": column}))
    assert hamdex.dedup([]).kept == []
    no_chunks = pa.table({"id": pa.chunked_array([], pa.string()), "text": pa.chunked_array([], pa.string())})
    assert rows(hamdex.dedup(no_chunks).clusters) == []


def test_pandas_keeps_its_index_and_types(posts):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(posts, index=range(100, 3100)).astype({"date": "datetime64[ns]"})
    # A column that Arrow cannot hold is ignored.
    frame["mixed"] = [object() if n % 2 else "text" for n in range(3000)]
    result = hamdex.dedup(frame, keep="newest:date")
    expected = hamdex.dedup(pa.table(posts), keep="newest:date")
    pd.testing.assert_frame_equal(result.kept, frame[[b == 1 for b in expected.mask]])
    assert result.duplicates.to_dict("list") == expected.duplicates.to_pydict()


def test_polars_keeps_its_types(posts):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(posts).with_columns(pl.col("date").str.to_date(), pl.lit(1).alias("n"))
    expected = hamdex.dedup(pa.table(posts))
    for data in [frame, frame.lazy()]:
        result = hamdex.dedup(data)
        assert isinstance(result.kept, pl.DataFrame)
        assert result.kept.equals(frame.filter(pl.Series([b == 1 for b in expected.mask])))
        assert result.duplicates.to_dicts() == expected.duplicates.to_pylist()
    categories = frame.with_columns(pl.col("text").cast(pl.Categorical))
    assert hamdex.dedup(categories).mask == expected.mask


def test_datasets_are_selected_from(posts):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict(posts)
    expected = hamdex.dedup(pa.table(posts))
    result = hamdex.dedup(dataset)
    assert isinstance(result.kept, datasets.Dataset)
    assert result.kept.to_list() == expected.kept.to_pylist()
    assert result.duplicates.to_list() == expected.duplicates.to_pylist()
    chosen = list(range(2999, 1000, -3))
    shuffled = dataset.select(chosen)
    table = pa.table(posts).take(chosen)
    assert hamdex.dedup(shuffled).mask == hamdex.dedup(table).mask


def test_any_provider_of_arrow_data_is_read_once(posts):
    table = pa.table(posts)

    class Once:
        asked = 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.asked += 1
            return table.__arrow_c_stream__(requested_schema)

    data, expected = Once(), hamdex.dedup(table)
    result = hamdex.dedup(data)
    assert data.asked == 1
    assert isinstance(result.kept, hamdex.Table)
    assert rows(result.kept) == expected.kept.to_pylist()
    batches = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(400)))
    assert rows(hamdex.dedup(batches).kept) == expected.kept.to_pylist()

    def broken():
        yield from table.to_batches(400)[:2]
        raise RuntimeError("the source is broken")

    with pytest.raises(ValueError, match="the source is broken"):
        hamdex.dedup(pa.RecordBatchReader.from_batches(table.schema, broken()))


def test_arrow_data_is_not_copied():
    table = pa.table({"text": pa.array(["a long text of some words"] * 1000, pa.large_string())})
    again = pa.table(hamdex.Table(table))
    addresses = [
        [buffer.address for buffer in t["text"].chunk(0).buffers() if buffer] for t in (table, again)
    ]
    assert addresses[0] == addresses[1]


def test_rows_near_a_stored_document_are_removed_too(posts, tmp_path, program):
    table = pa.table(posts)
    old, new = table.slice(0, 1000), table.slice(1000)
    with hamdex.Index.build(tmp_path / "idx", old, keep_features=True) as index:
        opened = hamdex.dedup(new, against=index)
    named = hamdex.dedup(new, against=tmp_path / "idx")
    assert opened.mask == named.mask
    from conftest import jsonl, read_jsonl

    source = jsonl(tmp_path / "new.jsonl", new.to_pydict())
    out = tmp_path / "out"
    command = [program, "dedup", str(source), "-o", str(out), "--against", str(tmp_path / "idx")]
    subprocess.run([*command, "--quiet"], check=True)
    assert named.kept.to_pylist() == read_jsonl(out / "kept.jsonl")
    found = rows(named.duplicates)
    written = read_jsonl(out / "duplicates.jsonl")
    assert [(row["id"], row["stored_id"] or row["kept_id"]) for row in found] == [
        (row["id"], row["kept_id"]) for row in written
    ]
    assert [row["similarity"] for row in found] == [row.get("similarity") for row in written]
    assert named.report["removed_against_index"] > 100


def test_invalid_calls_are_rejected_with_the_reason(posts, tmp_path):
    table = pa.table(posts)
    refused = [
        ({"text": "body"}, 'no column "body" among id, text, date'),
        ({"id": "key"}, 'no column "key"'),
        ({"keep": "newest:year"}, 'no column "year"'),
        ({"keep": "best:year"}, 'no column "year"'),
        ({"verify": "contains:1.5"}, "from 0 to 1"),
        ({"keep": "last"}, "supported are first, longest, newest:COLUMN and best:COLUMN"),
        ({"distance": 17}, "distance 17 exceeds 16"),
        ({"bits": 48}, "48 bits: supported are 32, 64 and 128"),
        ({"verify": "cosine:1"}, "cosine"),
        ({"pipeline": "tweet"}, "tweet"),
        ({"pipeline": 3}, "not int"),
    ]
    for given, words in refused:
        with pytest.raises(hamdex.UsageError, match=words):
            hamdex.dedup(table, **given)
    with pytest.raises(hamdex.UsageError, match="is a path"):
        hamdex.dedup("in.parquet")
    with pytest.raises(hamdex.UsageError, match="int is not a table"):
        hamdex.dedup(3)
    with pytest.raises(hamdex.UsageError, match='column "date" is of type Int64'):
        hamdex.dedup(pa.table({"date": [1, 2]}), text="date")
    with pytest.raises(hamdex.StorageError, match="absent"):
        hamdex.dedup(table, tmp=tmp_path / "absent")
    with pytest.raises(hamdex.UsageError, match="holds no hamdex index"):
        hamdex.dedup(table, against=tmp_path / "absent")


def test_errors_have_the_usual_base_classes():
    assert issubclass(hamdex.UsageError, ValueError)
    assert issubclass(hamdex.StorageError, OSError)
    assert issubclass(hamdex.DamageError, hamdex.HamdexError)
    error = pickle.loads(pickle.dumps(hamdex.UsageError("words")))
    assert str(error) == "words" and error.__module__ == "hamdex"


SLOW = """
    import hamdex, sys
    from conftest import made
    texts = made(400_000, seed=3)["text"]
    print("ready", flush=True)
    try:
        hamdex.dedup(texts, distance=16, verify="edit:0.3")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        assert hamdex.dedup(texts[:300]).report["documents"] == 300
        print("well", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_ctrl_c_stops_a_long_call_without_damage(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(textwrap.dedent(SLOW))
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.5)
    asked = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert time.monotonic() - asked < 3
    assert child.stdout.readline() == "well\n"
    assert child.wait(timeout=30) == 0


def test_other_threads_run_during_a_call(posts):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    hamdex.dedup(posts["text"] * 10, distance=16, verify="edit:0.5")
    ended = time.monotonic()
    done.set()
    thread.join()
    within = [at for at in ticks if started <= at <= ended]
    gaps = [later - at for at, later in zip(within, within[1:])]
    assert len(within) > 20 and max(gaps) < max(0.25, (ended - started) / 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of Unix")
def test_a_forked_process_has_separate_threads(posts):
    expected = hamdex.dedup(posts["text"][:300]).mask
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, hamdex.dedup(posts["text"][:300]).mask)
        os._exit(0)
    os.close(writing)
    assert os.read(reading, 1000) == expected
    assert os.waitpid(child, 0)[1] == 0
