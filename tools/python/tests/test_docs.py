"""Runs the examples of the documentation."""

import doctest
import importlib
import re
from pathlib import Path

import hamdex
import pytest

from conftest import jsonl


@pytest.mark.parametrize("module", ["_dedup", "_evaluate", "_files", "_fingerprint"])
def test_examples_of_functions_pass(module):
    outcome = doctest.testmod(importlib.import_module(f"hamdex.{module}"))
    assert outcome.attempted > 1 and outcome.failed == 0


@pytest.mark.parametrize(("kind", "examples"), [(hamdex.Index, 2), (hamdex.Pipeline, 4)])
def test_examples_of_classes_pass(kind, examples):
    parsed = doctest.DocTestParser().get_doctest(kind.__doc__, {}, kind.__name__, None, 0)
    assert len(parsed.examples) == examples
    assert doctest.DocTestRunner().run(parsed).failed == 0


@pytest.mark.filterwarnings("ignore::hamdex.DataWarning")
def test_examples_of_the_readmes_run(posts, tmp_path, monkeypatch):
    for package in ["pandas", "datasets", "daft"]:
        pytest.importorskip(package)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    project = Path(__file__).resolve().parents[3]
    readmes = [project / "README.md", project / "tools" / "python" / "README.md"]
    text = "".join(readme.read_text(encoding="utf-8") for readme in readmes)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    # Fewer rows than a sample, so that files and tables have the same sample.
    few = {name: column[:900] for name, column in posts.items()}
    jsonl("news.jsonl", few)
    pq.write_table(pa.table(few).rename_columns(["id", "content", "date"]), "crawl.parquet")
    names = {}
    for block in blocks:
        # Spark examples need a cluster; see tests/spark. Ray is installed by hand.
        if "hamdex.spark" in block or "import ray" in block:
            continue
        exec(block, names)
    expected = hamdex.dedup(pa.table(few)).kept["id"].to_pylist()
    assert names["clean"]["id"].tolist() == expected
    assert pq.read_table("kept.parquet")["id"].to_pylist() == expected
    assert [row["id"] for row in names["clean_stream"]] == expected
    assert len(list(names["new_rows"])) == len(names["seen"]) > 300
    names["seen"].close()
    pages = hamdex.dedup(pa.table(few).sort_by("id"), distance=12, pipeline="page").kept
    assert sorted(names["clean_pages"].to_pydict()["id"]) == pages["id"].to_pylist()
    assert "<html" in Path("kept.html").read_text(encoding="utf-8")
    (found,) = names["near"]
    assert found.key == "d1" and 0 < found.distance <= 16
    names["index"].close()


@pytest.mark.filterwarnings("ignore::hamdex.DataWarning")
@pytest.mark.parametrize(
    ("page", "needs"),
    [("pandas", ["pandas", "pyarrow"]), ("polars", ["polars"]), ("duckdb", ["duckdb", "pyarrow"])],
)
def test_a_page_of_the_guide_prints_what_it_shows(page, needs, guide):
    for package in needs:
        pytest.importorskip(package)
    guide(page, {})
