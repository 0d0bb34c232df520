"""Fingerprints: columns of every kind, compared with other libraries."""

import importlib.util
import json
import subprocess
from pathlib import Path

import hamdex
import pytest

pa = pytest.importorskip("pyarrow")

# Plain SimHash of character 3-grams with XXH3-64, as in other libraries.
PLAIN = {"segment": "raw", "ngram": 3, "weights": "tf"}


def texts_of_daft():
    """Texts in many scripts, also used to compare the command line with Daft."""
    path = Path(__file__).resolve().parents[3] / "tests" / "daft_simhash.py"
    spec = importlib.util.spec_from_file_location("daft_simhash", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [text for text in module.made() if text.strip()]


def test_columns_of_every_kind_have_the_same_fingerprints(posts):
    texts = [*posts["text"][:50], "...", None]
    expected = hamdex.fingerprint(texts)
    assert expected[-2:] == [None, None] and all(value < 2**64 for value in expected[:-2])
    assert hamdex.fingerprint(tuple(texts)) == expected
    array = hamdex.fingerprint(pa.array(texts))
    assert (array.to_pylist(), array.type) == (expected, pa.uint64())
    chunked = pa.chunked_array([texts[:20], texts[20:]])
    assert hamdex.fingerprint(chunked).to_pylist() == expected
    pl = pytest.importorskip("polars")
    series = hamdex.fingerprint(pl.Series("body", texts))
    assert (series.to_list(), series.name, series.dtype) == (expected, "body", pl.UInt64)
    pd = pytest.importorskip("pandas")
    frame = pd.Series(texts, index=range(7, 59), name="body")
    found = hamdex.fingerprint(frame)
    assert [None if pd.isna(value) else int(value) for value in found] == expected
    assert (found.name, list(found.index), str(found.dtype)) == ("body", list(frame.index), "UInt64")


def test_fingerprints_have_32_64_or_128_bits(posts):
    texts = posts["text"][:50]
    narrow, wide = hamdex.fingerprint(texts, bits=32), hamdex.fingerprint(texts, bits=128)
    assert max(narrow) < 2**32 <= 2**64 < max(wide)
    assert hamdex.fingerprint(pa.array(texts), bits=32).type == pa.uint32()
    bytes_of = hamdex.fingerprint(pa.array(texts), bits=128)
    assert [int.from_bytes(value, "big") for value in bytes_of.to_pylist()] == wide
    with pytest.raises(hamdex.UsageError, match="48 bits"):
        hamdex.fingerprint(texts, bits=48)


def test_the_command_line_has_the_same_fingerprints(posts, program):
    rows = "".join(json.dumps({"text": text}) + "\n" for text in posts["text"])
    for name in ["auto", "post", "code"]:
        command = [program, "fingerprint", "-", "--quiet", "--pipeline", name]
        done = subprocess.run(command, input=rows.encode(), capture_output=True, check=True)
        found = [int(json.loads(line)["fingerprint"], 16) for line in done.stdout.splitlines()]
        assert hamdex.fingerprint(posts["text"], pipeline=name) == found


def test_pipelines_are_built_from_names_descriptors_or_parts():
    post = hamdex.Pipeline("post")
    assert hamdex.Pipeline(post.descriptor) == post != hamdex.Pipeline("page")
    text = "sunny days are here again"
    number = post.fingerprint(text)
    for pipeline in ["post", post, post.descriptor]:
        assert hamdex.fingerprint([text], pipeline=pipeline) == [number]
    words = hamdex.Pipeline(segment="words", ngram=1, weights="tf")
    assert words.features("to be or not to be")[:2] == [("be", 2), ("to", 2)]
    assert post.fingerprint("...") is None
    with pytest.raises(hamdex.UsageError, match="ngram"):
        hamdex.Pipeline(ngram=1000)
    with pytest.raises(hamdex.UsageError, match="descriptor is complete"):
        hamdex.Pipeline(post.descriptor, ngram=3)
    with pytest.raises(hamdex.UsageError, match="tweet"):
        hamdex.Pipeline("tweet")
    with pytest.raises(hamdex.UsageError, match="not a column of texts"):
        hamdex.fingerprint({"a"})


def test_daft_has_the_same_fingerprints():
    daft = pytest.importorskip("daft")
    functions = pytest.importorskip("daft.functions")
    texts = texts_of_daft()
    table = daft.from_pydict({"text": texts})
    column = functions.simhash(daft.col("text"), ngram_size=3).alias("s")
    theirs = table.select(column).to_pydict()["s"]
    ours = hamdex.fingerprint(texts, pipeline=hamdex.Pipeline(**PLAIN))
    assert len(texts) > 9000
    assert ours == theirs


def test_the_package_simhash_has_the_same_fingerprints():
    simhash = pytest.importorskip("simhash")
    xxhash = pytest.importorskip("xxhash")
    pipeline = hamdex.Pipeline(**PLAIN)
    texts = texts_of_daft()[:2000]

    def theirs(text):
        features = [text[at : at + 3] for at in range(len(text) - 2)]
        return simhash.Simhash(features, f=64, hashfunc=xxhash.xxh3_64_digest).value

    assert hamdex.fingerprint(texts, pipeline=pipeline) == [theirs(text) for text in texts]
