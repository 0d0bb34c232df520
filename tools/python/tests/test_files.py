"""From file to file: the package writes the same files as the command line."""

import csv
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import hamdex
import pytest

from conftest import jsonl, made, read_jsonl

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

HAN = "春江潮水连海平海上明月共潮生滟滟随波千万里何处春江无月明江流宛转绕芳甸月照花林皆似霰"


def chinese(count, seed=23):
    """Chinese sentences, a third of which differ from an earlier one in a few characters."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        if texts and rng.random() < 0.35:
            text = list(rng.choice(texts))
            for _ in range(rng.choice([0, 1, 1, 2])):
                text[rng.randrange(len(text))] = rng.choice(HAN)
        else:
            text = rng.choices(HAN, k=rng.randrange(20, 60)) + ["。"]
        texts.append("".join(text))
    dates = [f"2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}" for _ in texts]
    return {"id": [f"z{n}" for n in range(count)], "text": texts, "date": dates}


@pytest.fixture(scope="module")
def table():
    """Posts in English, Chinese and both, with columns of types that JSON lacks.

    There are fewer rows than a sample, so that files and tables have the same sample.
    """
    posts, more = made(450), chinese(450)
    columns = {name: posts[name] + more[name] for name in posts}
    columns["id"] = list(range(900))
    columns["seen"] = pa.array(range(900), pa.timestamp("us"))
    columns["tags"] = [[n % 7, None] if n % 3 else None for n in range(900)]
    return pa.table(columns)


@pytest.fixture(scope="module")
def parquet(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(table, path, row_group_size=200)
    return path


@pytest.fixture
def run(program, tmp_path):
    """Runs `hamdex dedup` on files and returns the directory that it wrote."""

    def run(*arguments):
        out = tmp_path / "theirs"
        command = [program, "dedup", *map(str, arguments), "-o", str(out), "--quiet"]
        subprocess.run(command, check=True, capture_output=True)
        return out

    return run


def same(ours, theirs):
    """Asserts that reports are equal except for time and input names."""
    ours, theirs = dict(ours), dict(theirs)
    for report in (ours, theirs):
        del report["seconds"]
        report["settings"] = report["settings"] | {"inputs": None}
    assert ours == theirs


CASES = [
    ([], {}),
    (["--pipeline", "post"], {"pipeline": "post"}),
    (["--pipeline", "page", "-k", "3"], {"pipeline": "page", "distance": 3}),
    (["--pipeline", "code", "-k", "6"], {"pipeline": "code", "distance": 6}),
    (["--pipeline", "auto", "-k", "0"], {"pipeline": "auto", "distance": 0}),
    (["-k", "2", "--bits", "32"], {"distance": 2, "bits": 32}),
    (["-k", "12", "--verify", "jaccard:0.6"], {"distance": 12, "verify": "jaccard:0.6"}),
    (["--verify", "edit:0.9", "--keep", "longest"], {"verify": "edit:0.9", "keep": "longest"}),
    (["--bits", "128", "--keep", "newest:date"], {"bits": 128, "keep": "newest:date"}),
    (["-k", "10", "--verify", "zhou:3,2.4", "--verify-chain"],
     {"distance": 10, "verify": "zhou:3,2.4", "verify_chain": True}),
]


def test_conversations_are_one_text_for_the_command_line_and_the_package(table, run, tmp_path):
    turns = [
        [{"role": "user", "content": part} for part in text.split(" ")]
        for text in table["text"].to_pylist()
    ]
    joined = ["\n".join(turn["content"] for turn in parts) for parts in turns]
    source = tmp_path / "chat.parquet"
    pq.write_table(pa.table({"id": table["id"], "messages": turns, "flat": joined}), source)
    theirs = read_jsonl(run(source) / "kept.jsonl")
    assert theirs == read_jsonl(run(source, "--text-field", "flat", "--overwrite") / "kept.jsonl")
    ours = hamdex.dedup(pq.read_table(source))
    assert ours.report["settings"]["text"] == "messages.content"
    assert [row["id"] for row in theirs] == ours.kept["id"].to_pylist()
    assert 300 < len(theirs) < len(table)


@pytest.mark.parametrize(("options", "given"), CASES)
def test_a_parquet_file_keeps_the_rows_of_the_command_line(
    table, parquet, run, tmp_path, options, given
):
    theirs = run(parquet, "--format", "parquet", *options)
    expected = pq.read_table(theirs / "kept.parquet")
    assert expected.schema.types == table.schema.types
    assert 300 < len(expected) < len(table)
    # From file to file, and in memory.
    report = hamdex.dedup_file(parquet, tmp_path / "clean.parquet", **given)
    assert pq.read_table(tmp_path / "clean.parquet").equals(expected)
    same(report, json.loads((theirs / "report.json").read_text()))
    result = hamdex.dedup(table, **given)
    assert result.kept.equals(expected)
    duplicates = [(row["id"], row["kept_id"]) for row in read_jsonl(theirs / "duplicates.jsonl")]
    found = result.duplicates.select(["id", "kept_id"]).to_pylist()
    assert [(row["id"], row["kept_id"]) for row in found] == duplicates


def test_a_directory_gets_all_files_of_the_command_line(table, parquet, run, tmp_path):
    ours = tmp_path / "ours"
    report = hamdex.dedup_file([parquet], ours, distance=6, pipeline="post", format="parquet")
    theirs = run(parquet, "--format", "parquet", "-k", "6", "--pipeline", "post")
    names = sorted(path.name for path in theirs.iterdir())
    assert sorted(path.name for path in ours.iterdir()) == names and len(names) == 5
    for name in ["kept.parquet", "duplicates.jsonl", "clusters.jsonl", "rejects.jsonl"]:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    assert json.loads((ours / "report.json").read_text()) == report


def test_one_call_writes_a_clean_file_and_a_report(parquet, tmp_path):
    page = tmp_path / "report.html"
    report = hamdex.dedup_file(parquet, tmp_path / "clean.parquet", report=page)
    content = page.read_text()
    assert content.startswith("<!DOCTYPE html>") and f"{report['kept']:,}" in content
    assert sorted(os.listdir(tmp_path)) == ["clean.parquet", "report.html"]
    with pytest.raises(hamdex.UsageError, match="ends in .html"):
        hamdex.dedup_file(parquet, tmp_path / "b.parquet", report=tmp_path / "report.pdf")


def test_lines_of_json_are_copied_byte_for_byte(posts, tmp_path):
    odd = b'{"text" : "another \\u0074ext",  "n": 1.50, "id":"odd"}\n'
    source = tmp_path / "rows.jsonl.gz"
    lines = jsonl(tmp_path / "plain.jsonl", posts).read_bytes()
    source.write_bytes(gzip.compress(odd + lines))
    # One more text would change the sample.
    report = hamdex.dedup_file(source, tmp_path / "clean.jsonl", pipeline="auto")
    kept = (tmp_path / "clean.jsonl").read_bytes()
    assert kept.startswith(odd) and set(kept.splitlines()) <= set((odd + lines).splitlines())
    assert report["kept"] == kept.count(b"\n") < report["documents"] == 3001
    expected = hamdex.dedup(pa.table(posts), pipeline="auto").kept["id"].to_pylist()
    assert [row["id"] for row in read_jsonl(tmp_path / "clean.jsonl")] == ["odd", *expected]


def test_csv_output_keeps_the_cells_of_csv_input(posts, tmp_path):
    source, clean = tmp_path / "rows.csv", tmp_path / "clean.csv"
    names = ["date", "id", "text", "note"]
    notes = ['say "hi", they said', "two\nlines", "", "公园"]
    rows = list(zip(posts["date"], posts["id"], posts["text"], notes * 750))
    with open(source, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    hamdex.dedup_file(source, clean, distance=6, pipeline="post")
    with open(clean, newline="", encoding="utf-8") as file:
        found = list(csv.reader(file))
    table = pa.table(posts)
    kept = set(hamdex.dedup(table, distance=6, pipeline="post").kept["id"].to_pylist())
    assert found == [names, *(list(row) for row in rows if row[1] in kept)]
    hamdex.dedup_file(source, tmp_path / "clean.tsv", distance=6, pipeline="post")
    with open(tmp_path / "clean.tsv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file, delimiter="\t")) == found
    with pytest.raises(hamdex.UsageError, match="csv needs CSV and TSV inputs"):
        hamdex.dedup_file(jsonl(tmp_path / "rows.jsonl", posts), tmp_path / "b.csv")


def test_several_files_are_deduplicated_together(posts, tmp_path):
    halves = [{name: column[part] for name, column in posts.items()}
              for part in (slice(0, 1700), slice(1700, None))]
    first = jsonl(tmp_path / "a.jsonl", halves[0])
    pq.write_table(pa.table(halves[1]), tmp_path / "b.parquet")
    # A generator of paths and strings is accepted like a list.
    sources = (kind(path) for kind, path in [(str, first), (os.fspath, tmp_path / "b.parquet")])
    hamdex.dedup_file(sources, tmp_path / "clean.jsonl", pipeline="auto")
    expected = hamdex.dedup(pa.table(posts), pipeline="auto").kept.to_pylist()
    assert read_jsonl(tmp_path / "clean.jsonl") == expected


def test_names_that_look_like_options_are_file_names(posts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    some = {name: column[:100] for name, column in posts.items()}
    for name in ["--help.jsonl", "a=b.jsonl", "公园.jsonl"]:
        jsonl(name, some)
        report = hamdex.dedup_file(name, f"-o {name}")
        assert report["documents"] == len(read_jsonl(f"-o {name}")) + report["removed"] == 100
    os.rename("a=b.jsonl", "-")
    # Does not read standard input: the lines of a file decide its format, with any name.
    assert hamdex.dedup_file("-", "out.jsonl")["documents"] == 100


def test_rows_near_a_stored_document_are_removed_too(posts, tmp_path):
    table = pa.table(posts)
    pq.write_table(table.slice(1000), tmp_path / "new.parquet")
    with hamdex.Index.build(tmp_path / "idx", table.slice(0, 1000), keep_features=True) as index:
        expected = hamdex.dedup(table.slice(1000), against=index)
        for against in [index, tmp_path / "idx", os.fspath(tmp_path / "idx")]:
            report = hamdex.dedup_file(
                tmp_path / "new.parquet", tmp_path / "clean.parquet", against=against, overwrite=True
            )
            assert report["removed_against_index"] > 100
            assert pq.read_table(tmp_path / "clean.parquet").equals(expected.kept)


def test_pipelines_are_passed_as_names_or_objects(posts, tmp_path):
    source = jsonl(tmp_path / "rows.jsonl", posts)
    pipeline = hamdex.Pipeline(segment="words", ngram=2, weights="tf")
    report = hamdex.dedup_file(source, tmp_path / "a.jsonl", pipeline=pipeline, distance=6)
    assert report["settings"]["pipeline"] == pipeline.descriptor
    expected = hamdex.dedup(pa.table(posts), pipeline=pipeline, distance=6)
    assert read_jsonl(tmp_path / "a.jsonl") == expected.kept.to_pylist()


def test_bad_rows_are_reported_and_skipped_up_to_a_maximum(tmp_path):
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text":"sunny days are here"}\n{"text":\n{"text":" "}\n')
    rejects = tmp_path / "bad.jsonl"
    clean = tmp_path / "clean.jsonl"
    with pytest.raises(hamdex.DataError, match="1 of 3 rows are bad, --max-bad allows 10 %"):
        hamdex.dedup_file(source, clean, rejects=rejects)
    assert not clean.exists()
    report = hamdex.dedup_file(source, clean, rejects=rejects, max_bad=1, overwrite=True)
    counts = [report[name] for name in ("rows", "documents", "kept", "rejects")]
    assert counts == [3, 2, 2, 1] and report["not_compared"] == {"empty text": 1}
    assert [row["line"] for row in read_jsonl(rejects)] == [2]


def test_invalid_calls_are_rejected_with_the_reason(parquet, tmp_path, capfd):
    out = tmp_path / "clean.parquet"
    with pytest.raises(hamdex.DataError, match=r'no field "body".*\(fields: id, text'):
        hamdex.dedup_file(parquet, out, text="body")
    refused = [
        ({"keep": "last"}, "expected first, longest, newest"),
        ({"distance": 17}, "distance 17 exceeds 16"),
        ({"bits": 48}, "expected 32, 64 or 128"),
        ({"verify": "cosine:1"}, "cosine:1"),
        ({"pipeline": "tweet"}, "tweet"),
        ({"format": "jsonl"}, "is parquet by its name"),
        ({"against": tmp_path / "absent"}, "holds no hamdex index"),
    ]
    for given, words in refused:
        with pytest.raises(hamdex.UsageError, match=words):
            hamdex.dedup_file(parquet, out, **given)
    for name, words in [
        ("a.json", "give a name in .jsonl"),
        ("a.feather", "give a name in .jsonl"),
        ("a.jsonl.bz2", "results can be compressed as .gz or .zst"),
    ]:
        with pytest.raises(hamdex.UsageError, match=words):
            hamdex.dedup_file(parquet, tmp_path / name)
    with pytest.raises(hamdex.UsageError, match="not provided: <INPUT>"):
        hamdex.dedup_file([], out)
    with pytest.raises(hamdex.UsageError, match="use hamdex.dedup for tables"):
        hamdex.dedup_file(pq.read_table(parquet), out)
    with pytest.raises(OSError, match="absent.jsonl"):
        hamdex.dedup_file(tmp_path / "absent.jsonl", out)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(hamdex.DataError, match="broken.parquet: cannot be read as Parquet"):
        hamdex.dedup_file(tmp_path / "broken.parquet", out)
    assert sorted(os.listdir(tmp_path)) == ["broken.parquet"]
    assert capfd.readouterr() == ("", ""), "a library prints nothing"


PEAK = """
    import resource, sys
    import hamdex
    report = hamdex.dedup_file(sys.argv[1], sys.argv[2], pipeline="page", distance=3)
    print(report["documents"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory has another unit elsewhere")
def test_memory_does_not_grow_with_the_texts(tmp_path):
    rng = random.Random(3)
    words = [f"{rng.getrandbits(40):x}" for _ in range(5000)]
    peaks = {}
    for groups in (4, 20):
        source = tmp_path / f"{groups}.parquet"
        texts = lambda: [" ".join(rng.choices(words, k=800)) for _ in range(1000)]
        with pq.ParquetWriter(source, pa.schema([("text", pa.string())])) as writer:
            for _ in range(groups):
                writer.write_table(pa.table({"text": texts()}))
        command = [sys.executable, "-c", textwrap.dedent(PEAK), source, f"{groups}-clean.parquet"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
        documents, peaks[groups] = map(int, done.stdout.split())
        assert documents == groups * 1000
    # The second file has 130 MB more text.
    assert peaks[20] - peaks[4] < 40_000, peaks


SLOW = """
    import sys
    import hamdex
    print("ready", flush=True)
    try:
        hamdex.dedup_file(
            sys.argv[1], sys.argv[2], distance=16, verify="edit:0.3", overwrite=True
        )
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(hamdex.dedup(["a b c", "a b c"], distance=3).report["kept"], flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_ctrl_c_stops_a_long_call_and_changes_no_file(tmp_path):
    source = jsonl(tmp_path / "rows.jsonl", {"text": made(400_000, seed=3)["text"]})
    clean = tmp_path / "clean.jsonl"
    clean.write_text("what was there before\n")
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW), source, clean],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(2)
    asked = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert time.monotonic() - asked < 3
    assert child.stdout.readline() == "1\n"
    assert child.wait(timeout=30) == 0
    assert clean.read_text() == "what was there before\n"
    assert sorted(os.listdir(tmp_path)) == ["clean.jsonl", "rows.jsonl"]
