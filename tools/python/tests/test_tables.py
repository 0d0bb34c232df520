"""Custom tables for texts: secrets, stop words, dictionaries, weights and IDF tables."""

import os
import pickle
import warnings

import hamdex
import pytest

pa = pytest.importorskip("pyarrow")

RAIN = "it will rain tomorrow so take a coat and an umbrella with you"
RAIN_TOO = "it will rain tomorrow so take a coat or an umbrella with you"
BOOK = "just finished reading a wonderful book about the deep sea"


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("6f1d0c9be2a8475393d4c07a51fe286b\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def files(tmp_path):
    """Writes a file of each kind of table."""
    lines = {
        "stop_words": "coat\numbrella\n",
        "dictionary": "樱花节 100 n\n",
        "weights": "rain\t3\nbook\t1\n",
    }
    paths = {}
    for name, text in lines.items():
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text(text, encoding="utf-8")
    return paths


@pytest.mark.parametrize(
    "given",
    [
        {"simplified": True},
        {"stop_words": "builtin"},
        {"weights": "tf"},
        {"stop_words": True},
        {"dictionary": True},
        {"weights": True},
        {"seed_file": True},
    ],
)
def test_every_call_accepts_the_tables_of_a_pipeline(tmp_path, files, secret, given):
    files = files | {"seed_file": secret}
    given = {name: files.get(name, value) if value is True else value for name, value in given.items()}
    pipeline = hamdex.Pipeline("auto", **given)
    assert pipeline != hamdex.Pipeline("auto")
    expected = pipeline.fingerprint(RAIN)
    assert hamdex.fingerprint([RAIN], **given) == [expected]
    assert hamdex.fingerprint(pa.array([RAIN]), **given).to_pylist() == [expected]
    named = hamdex.dedup([RAIN, BOOK], pipeline="auto", **given).report["settings"]["pipeline"]
    assert named == pipeline.descriptor
    found = hamdex.evaluate([RAIN, RAIN, BOOK], [(0, 1)], pipeline="auto", **given)
    assert found["pipeline"] == pipeline.descriptor
    with hamdex.Index.create(tmp_path / "made", pipeline="auto", **given) as index:
        index.insert("rain", RAIN)
        assert index.pipeline == pipeline.descriptor and index.get("rain") == expected
    built = hamdex.Index.build(tmp_path / "built", [RAIN], pipeline="auto", **given)
    assert built.get(0) == expected
    built.close()
    seed = {name: value for name, value in given.items() if name == "seed_file"}
    with hamdex.Index.open(tmp_path / "made", **seed) as index:
        assert [match.key for match in index.search(RAIN)] == ["rain"]
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "%s"}\n' % RAIN)
    report = hamdex.dedup_file(rows, tmp_path / "out", pipeline="auto", **given)
    assert report["settings"]["pipeline"] == pipeline.descriptor


def test_a_pickled_pipeline_contains_its_tables(files, secret):
    pipeline = hamdex.Pipeline("post", stop_words=files["stop_words"], seed_file=secret)
    same = pickle.loads(pickle.dumps(pipeline))
    assert same == pipeline and same.fingerprint(RAIN) == pipeline.fingerprint(RAIN)
    assert "6f1d" not in repr(pipeline)
    with pytest.raises(hamdex.UsageError):
        hamdex.Pipeline(pipeline.descriptor)
    again = hamdex.Pipeline(
        pipeline.descriptor, stop_words=files["stop_words"], seed_file=secret
    )
    assert again == pipeline


def test_an_idf_table_is_learned_from_the_texts_of_the_call(tmp_path):
    texts = [f"{RAIN} {n}" for n in range(50)] + [BOOK]
    named = hamdex.dedup(texts, weights="tfidf", idf="learn").report["settings"]["pipeline"]
    plain = hamdex.dedup(texts, weights="tfidf").report["settings"]["pipeline"]
    assert named != plain and "idf" in named
    with hamdex.Index.build(tmp_path / "idx", texts, weights="tfidf", idf="learn") as index:
        assert index.pipeline == named
    # A table that was learned for an index never changes.
    more = {"weights": "tfidf", "idf": "learn"}
    with hamdex.Index.build(tmp_path / "idx", [BOOK], **more) as index:
        assert index.pipeline == named
    assert hamdex.fingerprint(texts, weights="tfidf", idf="learn")[-1] is not None
    with pytest.raises(hamdex.UsageError, match="needs texts to learn from"):
        hamdex.Pipeline("auto", weights="tfidf", idf="learn")
    with pytest.raises(hamdex.UsageError, match="needs texts to learn from"):
        hamdex.Index.create(tmp_path / "none", pipeline="auto", weights="tfidf", idf="learn")


def test_an_index_with_a_secret_opens_without_it_for_fingerprints(tmp_path, secret):
    path = tmp_path / "idx"
    with hamdex.Index.create(path, pipeline="post", seed_file=secret) as index:
        index.insert("rain", RAIN)
        fingerprint = index.get("rain")
    with hamdex.Index.open(path) as index:
        assert "secret=" in index.pipeline
        assert [match.key for match in index.search(fingerprint)] == ["rain"]
        index.insert("more", fingerprint)
        assert len(index) == 2
        for call in [
            lambda: index.search(RAIN),
            lambda: index.insert("b", RAIN),
            lambda: index.insert_if_new("b", RAIN),
            lambda: hamdex.dedup([RAIN], against=index),
            lambda: hamdex.Index.build(path, [RAIN]),
        ]:
            with pytest.raises(hamdex.UsageError, match="seed_file"):
                call()
    result = hamdex.dedup([RAIN, BOOK], against=path, seed_file=secret)
    assert list(result.mask) == [0, 1]
    other = tmp_path / "other"
    other.write_text("another secret of many letters")
    other.chmod(0o600)
    with pytest.raises(hamdex.UsageError, match="secret"):
        hamdex.Index.open(path, seed_file=other)


def test_a_secret_that_others_can_read_causes_a_warning(tmp_path, secret):
    if os.name != "posix":
        pytest.skip("modes of files are those of Unix")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hamdex.Pipeline("post", seed_file=secret)
    secret.chmod(0o644)
    with pytest.warns(UserWarning, match="chmod 600"):
        hamdex.Pipeline("post", seed_file=secret)


def test_invalid_tables_are_rejected_with_the_reason(tmp_path, secret):
    short = tmp_path / "short"
    short.write_text("too short")
    short.chmod(0o600)
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)))
    for call, kind, message in [
        (lambda: hamdex.Pipeline(seed_file=short), hamdex.UsageError, "is not a secret"),
        (lambda: hamdex.Pipeline(seed_file=tmp_path / "none"), hamdex.StorageError, "none"),
        (lambda: hamdex.Pipeline(stop_words=binary), hamdex.UsageError, "not a text file"),
        (lambda: hamdex.Pipeline(idf=binary), hamdex.UsageError, "--save-idf"),
        (lambda: hamdex.Pipeline(weights="heavy"), hamdex.UsageError, 'weights is "heavy"'),
        (
            lambda: hamdex.dedup([RAIN], pipeline=hamdex.Pipeline("post"), seed_file=secret),
            hamdex.UsageError,
            "complete",
        ),
        (
            lambda: hamdex.Pipeline(hamdex.Pipeline("post").descriptor, simplified=True),
            hamdex.UsageError,
            "complete",
        ),
    ]:
        with pytest.raises(kind, match=message):
            call()


def test_an_index_with_features_verifies_by_default(tmp_path):
    other = "it will rain tomorrow so take a coat and or one scarf for them"
    with hamdex.Index.create(tmp_path / "idx", pipeline="post", keep_features=True) as index:
        index.insert("rain", RAIN)
        far = {"distance": 16}
        # The fingerprints differ in 11 bits, and half of the features are equal.
        (stranger,) = index.search(other, verify="none", **far)
        assert stranger.key == "rain" and stranger.similarity is None
        assert index.search(other, **far) == []
        assert index.search_batch([other, RAIN], **far)[0] == []
        assert index.snapshot().search(other, **far) == []
        (near,) = index.search(RAIN_TOO, distance=16, verify="jaccard:0.3")
        assert near.similarity >= 0.3
        # A fingerprint has no text to verify.
        assert [match.key for match in index.search(stranger.fingerprint)] == ["rain"]
        assert index.insert_if_new("far", other, distance=16, verify="none").key == "rain"
        assert index.insert_if_new("far", other, distance=16) is None
        assert index.insert_if_new("print", stranger.fingerprint).key == "rain"
        with pytest.raises(hamdex.UsageError, match="a separate call"):
            index.insert_if_new(["x", "y"], [RAIN, stranger.fingerprint])
