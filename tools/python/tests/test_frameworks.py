"""Frameworks: lazy expressions, streams, and data that is split among workers."""

import importlib.util
import re
import warnings
from pathlib import Path

import hamdex
import pytest

from conftest import jsonl, made

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

#: Settings that are not chosen from a sample, so that order and partitions do not matter.
NAMED = {"distance": 12, "pipeline": "post", "verify": "jaccard:0.6"}


@pytest.fixture(scope="module")
def few():
    return made(900)


@pytest.fixture(scope="module")
def kept(few):
    return hamdex.dedup(pa.table(few), **NAMED).kept["id"].to_pylist()


@pytest.fixture
def stream(few):
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict(few).to_iterable_dataset(num_shards=3)


def ids(rows):
    return [row["id"] for row in rows]


def test_a_polars_expression_keeps_the_same_rows(few, kept):
    pl = pytest.importorskip("polars")
    pytest.importorskip("hamdex.polars")
    lazy = pl.DataFrame(few).lazy()
    text = pl.col("text").hamdex
    assert lazy.filter(text.is_kept(**NAMED)).collect()["id"].to_list() == kept
    newest = pl.struct("text", "date").hamdex.is_kept(keep="newest:date", **NAMED)
    expected = hamdex.dedup(pl.DataFrame(few), keep="newest:date", **NAMED).kept
    assert lazy.filter(newest).collect().equals(expected)
    twice = pl.concat([lazy.with_columns(site=pl.lit(site)) for site in "ab"])
    assert ids(twice.filter(text.is_kept(**NAMED).over("site")).collect().to_dicts()) == kept * 2


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_a_polars_expression_computes_fingerprints(few, bits):
    pl = pytest.importorskip("polars")
    pytest.importorskip("hamdex.polars")
    lazy = pl.DataFrame({"text": [*few["text"], None, "..."]}).lazy()
    lazy = lazy.select("text", print=pl.col("text").hamdex.fingerprint(bits=bits, pipeline="post"))
    found = lazy.collect(engine="streaming")
    assert found.schema == lazy.collect_schema()
    plain = hamdex.fingerprint(found["text"], bits=bits, pipeline="post")
    assert found["print"].to_list() == plain.to_list()
    if bits != 128:
        distance = pl.col("print").hamdex.distance(pl.col("print").first())
        expected = [None if n is None else (n ^ plain[0]).bit_count() for n in plain]
        assert found.select(distance)["print"].to_list() == expected


def test_a_polars_expression_rejects_other_widths():
    pl = pytest.importorskip("polars")
    pytest.importorskip("hamdex.polars")
    with pytest.raises(hamdex.UsageError, match="48"):
        pl.col("text").hamdex.fingerprint(bits=48)


def test_a_stream_is_read_twice_and_stays_a_stream(stream, kept):
    result = hamdex.dedup(stream, **NAMED)
    assert type(result.kept) is type(stream) and result.kept.features == stream.features
    assert ids(result.kept) == kept == ids(result.kept)
    assert sorted(ids(result.kept.shuffle(seed=3, buffer_size=50))) == sorted(kept)
    assert result.duplicates["kept_id"][0] in kept


def test_a_stream_without_known_columns_is_accepted(few, kept):
    datasets = pytest.importorskip("datasets")
    rows = pa.table(few).to_pylist()
    unknown = datasets.IterableDataset.from_generator(lambda: iter(rows))
    assert unknown.column_names is None
    assert ids(hamdex.dedup(unknown, **NAMED).kept) == kept


def test_a_stream_that_changes_between_its_passes_is_rejected(stream):
    result = hamdex.dedup(stream.shuffle(seed=1), **NAMED)
    assert len(list(result.kept)) > 100
    shuffled = stream.shuffle(seed=1)
    result = hamdex.dedup(shuffled, **NAMED)
    shuffled.set_epoch(1)
    with pytest.raises(hamdex.DataError, match="not the row that was compared"):
        list(result.kept)
    rows = [{"text": f"{n} sheep walk over the hill"} for n in range(5)]
    shrinking = type(stream).from_generator(lambda: iter(rows))
    result = hamdex.dedup(shrinking, **NAMED)
    rows.pop()
    with pytest.raises(hamdex.DataError, match="4 of 5 rows"):
        list(result.kept)


def test_a_stream_is_filtered_in_one_pass_by_an_index(few, stream, tmp_path):
    with hamdex.Index.create(tmp_path / "seen", pipeline="post", distance=12, keep_features=True) as seen:

        def is_new(keys, texts):
            return [near is None for near in seen.insert_if_new(keys, texts, verify="jaccard:0.6")]

        fresh = stream.filter(is_new, input_columns=["id", "text"], batched=True, batch_size=100)
        first = ids(fresh)
        assert len(first) == len(seen) < len(few["id"])
        # A document is not its own duplicate, so a second epoch returns the same rows.
        assert ids(fresh) == first


def test_daft_frames_are_accepted(few, kept):
    daft = pytest.importorskip("daft")
    result = hamdex.dedup(daft.from_pydict(few), **NAMED)
    assert isinstance(result.kept, daft.DataFrame)
    assert result.kept.to_pydict()["id"] == kept
    assert set(result.duplicates.to_pydict()["kept_id"]) <= set(kept)


def test_partitions_of_daft_compute_fingerprints(few):
    daft = pytest.importorskip("daft")

    @daft.func.batch(return_dtype=daft.DataType.uint64())
    def prints(texts):
        return hamdex.fingerprint(texts.to_arrow(), pipeline="post")

    frame = daft.from_pydict(few).into_batches(300)
    found = frame.select("id", prints(daft.col("text")).alias("print")).to_pydict()
    of = dict(zip(found["id"], found["print"]))
    assert [of[id] for id in few["id"]] == hamdex.fingerprint(few["text"], pipeline="post")


@pytest.mark.parametrize("kind", ["list", "pyarrow", "polars", "pandas"])
def test_groups_are_those_of_the_command_line(few, cli, kind):
    rows = cli(few, "-k", "7", "--verify", "none", "--pipeline", "post")["clusters"]
    prints = hamdex.fingerprint(few["text"], pipeline="post")
    make, back = {
        "list": lambda: (list, list),
        "pyarrow": lambda: (lambda values: pa.array(values, pa.uint64()), pa.Array.to_pylist),
        "polars": lambda: (pytest.importorskip("polars").Series, list),
        "pandas": lambda: (
            lambda values: pytest.importorskip("pandas").Series(values, dtype="UInt64"),
            lambda found: pa.array(found, from_pandas=True).to_pylist(),
        ),
    }[kind]()
    found = back(hamdex.groups(make([*prints, None]), distance=7))
    assert found.pop() is None
    expected = {id: row["cluster"] for row in rows for id in row["ids"]}
    assert found == [expected.get(id) for id in few["id"]] and len(rows) > 50


def test_groups_reject_what_is_no_fingerprint():
    for wrong in ([-1], [2**64], ["a"], {1}):
        with pytest.raises(hamdex.UsageError, match="fingerprints"):
            hamdex.groups(wrong, distance=3)
    with pytest.raises(hamdex.UsageError, match="distance 17"):
        hamdex.groups([1], distance=17)
    assert hamdex.groups([], distance=3) == [] and hamdex.groups([None], distance=3) == [None]


def test_only_texts_of_groups_have_to_be_compared(few, kept):
    table = pa.table(few)
    prints = hamdex.fingerprint(table["text"], pipeline="post")
    near = table.filter(pc.is_valid(hamdex.groups(prints, distance=12)))
    assert 0 < len(near) < len(table)
    removed = pa.table(hamdex.dedup(near, **NAMED).duplicates)["id"]
    rest = table.filter(pc.invert(pc.is_in(table["id"], removed)))
    assert rest["id"].to_pylist() == kept


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    ray = importlib.import_module("ray")
    importlib.import_module("ray.data")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        # Workers import from the directory of the driver first, where the sources could be.
        patch.chdir(tmp_path_factory.mktemp("ray"))
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        yield ray
        ray.shutdown()


def test_ray_datasets_are_accepted(ray, few, kept):
    dataset = ray.data.from_arrow([pa.table(few).slice(at, 300) for at in (0, 300, 600)])
    result = hamdex.dedup(dataset, **NAMED)
    assert isinstance(result.kept, ray.data.Dataset)
    assert ids(result.kept.take_all()) == kept
    assert set(ids(result.duplicates.take_all())).isdisjoint(kept)


def test_the_example_of_ray_keeps_the_rows_of_one_machine(ray, few):
    readme = Path(__file__).resolve().parents[1] / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [block for block in blocks if "import ray" in block]
    jsonl("news.jsonl", few)
    names = {"hamdex": hamdex, "pa": pa, "pc": pc}
    exec(example, names)
    table = pa.table(few).sort_by("id")
    kept = hamdex.dedup(table, distance=12, pipeline="page").kept["id"].to_pylist()
    assert sorted(ids(names["clean_blocks"].take_all())) == kept


# Installed by hand: it is larger than all other packages of the tests together.
if importlib.util.find_spec("ray") is None:
    del test_ray_datasets_are_accepted, test_the_example_of_ray_keeps_the_rows_of_one_machine
