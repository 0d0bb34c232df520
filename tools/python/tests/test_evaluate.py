"""Evaluation: the figures of the command line, for labels of any kind."""

import json
import subprocess

import hamdex
import pytest

from conftest import jsonl

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def labels(posts):
    """Returns pairs that share most words, and the share."""
    found = []
    sets = [set(text.rstrip("!?… ").split()) for text in posts["text"][:400]]
    for a in range(400):
        for b in range(a):
            shared = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
            if shared >= 0.6:
                found.append((posts["id"][b], posts["id"][a], round(shared, 4)))
    assert len(found) > 50
    return found


def some(posts):
    return {name: values[:400] for name, values in posts.items()}


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ([], {}),
        (["-k", "5"], {"distance": 5}),
        (["--verify", "jaccard:0.5"], {"verify": "jaccard:0.5"}),
        (
            ["--min-similarity", "0.8", "--ignore-above", "0.7"],
            {"min_similarity": 0.8, "ignore_above": 0.7},
        ),
    ],
)
def test_the_command_line_returns_the_same_figures(
    posts, labels, program, tmp_path, options, given
):
    source = jsonl(tmp_path / "rows.jsonl", some(posts))
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("".join(f"{a}\t{b}\t{similarity}\n" for a, b, similarity in labels))
    command = [program, "evaluate", str(source), "--pairs", str(tsv), "--json", "--quiet", *options]
    done = subprocess.run(command, check=True, capture_output=True)
    theirs = {"curve": [], "verified": [], "default": [], "best": []}
    for line in done.stdout.splitlines():
        figure = json.loads(line)
        del figure["sketch"]
        theirs[figure.pop("what")].append(figure)
    ours = hamdex.evaluate(pa.table(some(posts)), labels, **given)
    assert ours["curve"] == theirs["curve"]
    assert (ours["verified"] or []) == theirs["verified"]
    assert ([ours["settings"]] if ours["settings"] else []) == theirs["default"]


def test_labels_are_lists_or_tables(posts, labels):
    table = pa.table(some(posts))
    expected = hamdex.evaluate(table, labels, min_similarity=0.8)
    columns = dict(zip(["a", "b", "like"], map(list, zip(*labels))))
    given = {"similarity": "like", "min_similarity": 0.8}
    kinds = [pa.table(columns)]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    kinds += [pandas.DataFrame(columns), polars.DataFrame(columns)]
    for pairs in kinds:
        assert hamdex.evaluate(table, pairs, **given) == expected, type(pairs)
    assert expected["positives"] < len(labels) and expected["unknown"] == 0
    more = hamdex.evaluate(table, [(a, b) for a, b, _ in labels] + [("p0", "none")])
    assert (more["positives"], more["unknown"]) == (len(labels), 1)


def test_row_numbers_are_ids():
    texts = ["sunny days are here again", "Sunny days are here again!", "something else"]
    pandas = pytest.importorskip("pandas")
    for pairs in [[(0, 1)], pandas.DataFrame({"a": [0], "b": [1]})]:
        found = hamdex.evaluate(texts, pairs)
        assert (found["positives"], found["settings"]["correct"]) == (1, 1)
    with pytest.raises(hamdex.UsageError, match='pairs have no column "like" among a, b'):
        hamdex.evaluate(texts, pa.table({"a": [0], "b": [1]}), similarity="like")
