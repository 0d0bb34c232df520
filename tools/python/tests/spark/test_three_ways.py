"""Shell, Python and Spark keep the same rows of a Parquet file and write the same report."""

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamdex

from .conftest import documents

hs = pytest.importorskip(
    "hamdex.spark", reason="no Spark here", exc_type=ImportError
)


@pytest.fixture
def crawl(tmp_path):
    """Writes a file with an unused column, and rows that are not documents."""
    # Enough documents for reports with prefixes of two digits.
    rows = documents(4300, 60, 60)
    rows += [("e1", None), ("e2", " "), ("e3", "公园 里 的 樱花 开 了 很多 人 去 看"),
             ("e4", "公园 里 的 樱花 开 了 很多 人 去 看")]  # fmt: skip
    seen = [text for _, text in rows]
    table = pa.table(
        {
            "id": [id for id, _ in rows],
            "content": [text for _, text in rows],
            "stars": pa.array(range(len(rows)), pa.int16()),
            # One host has copies of the documents of the others, and some rows have no host.
            "host": [
                None if id == "e3" else "mirror.org" if text in seen[:at] else f"{at % 7}.org"
                for at, (id, text) in enumerate(rows)
            ],
        }
    )
    path = tmp_path / "crawl.parquet"
    pq.write_table(table, path)
    return path


def kept(path):
    """Returns the rows of a file or directory, by id."""
    return pq.read_table(path, columns=["id", "content", "stars"]).sort_by("id")


CASES = [
    {"pipeline": "page", "distance": 3},
    {"pipeline": "post", "distance": 10, "verify": "edit:0.9", "keep": "longest"},
    {"pipeline": "post", "distance": 6, "bits": 128},
    # So few bits that most documents are near and form one dense group.
    {"pipeline": "post", "distance": 2, "bits": 32},
]


@pytest.mark.filterwarnings("ignore::hamdex.DataWarning")
@pytest.mark.parametrize("settings", CASES)
def test_three_ways_keep_the_same_rows(spark, crawl, tmp_path, hamdex_lines, settings):
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    options += ["--source-field", "host"]
    shell, python, cluster = (tmp_path / f"{way}.parquet" for way in ("shell", "python", "spark"))
    pages = {way: tmp_path / f"{way}.html" for way in ("shell", "python", "spark")}

    hamdex_lines("dedup", crawl, "-o", shell, "--text-field", "content", "--report", pages["shell"],
                 *options)  # fmt: skip
    settings = settings | {"source_field": "host"}
    ours = hamdex.dedup_file(crawl, python, text="content", report=pages["python"], **settings)
    summary = hs.dedup_file(spark, crawl, cluster, "content", report=pages["spark"], **settings)
    table = hamdex.dedup(pq.read_table(crawl), "content", **settings).report

    expected = kept(shell)
    assert 100 < len(expected) < 4200
    assert kept(python).equals(expected)
    assert kept(cluster).equals(expected)
    counts = ("documents", "kept", "removed", "clusters", "rejects")
    assert [summary[name] for name in counts] == [ours[name] for name in counts]
    settings = ("bits", "distance", "verification", "verified_with_kept", "pipeline", "keep")
    assert [summary["settings"][name] for name in settings] == [
        ours["settings"][name] for name in settings
    ]
    assert summary["largest"] == ours["largest"]
    # The counts of every source are the same.
    assert len(ours["sources"]) == 9 and ours["sources"][0]["name"] == "mirror.org"
    assert summary["sources"] == table["sources"] == ours["sources"]
    about = [warning for warning in ours["warnings"] if " documents of " in warning]
    assert summary["warnings"] == table["warnings"] == about != []
    assert len({sources(path.read_text()) for path in pages.values()}) == 1
    # Charts and tables of a report show the same counts.
    page = {way: figures(path.read_text()) for way, path in pages.items()}
    assert page["spark"] == page["python"] == page["shell"]
    assert len(page["spark"]) >= 5


def sources(page):
    """Returns the table of sources of a report."""
    return page.partition("<h2>Sources</h2>")[2].partition("<h2>")[0]


def figures(page):
    """Returns the charts of a report with captions and figures, verbatim."""
    return page.split("<figure>")[1:-1] + page.split("<figure>")[-1].split("</figure>")[:1]


def test_the_commands_of_the_readme_agree(spark, crawl, tmp_path, hamdex_lines, monkeypatch):
    readme = (Path(__file__).resolve().parents[4] / "README.md").read_text(encoding="utf-8")
    section = readme.partition("\n### One line\n")[2].partition("\n### ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["sh", "python", "python"]
    found = []
    for number, (kind, lines) in enumerate(blocks):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "crawl.parquet").write_bytes(crawl.read_bytes())
        monkeypatch.chdir(place)
        if kind == "sh":
            program, *arguments = shlex.split(lines)
            assert program == "hamdex"
            hamdex_lines(*arguments)
        else:
            # Relative paths start at a separate directory in Spark.
            for name in ("crawl.parquet", "clean.parquet"):
                lines = lines.replace(f'"{name}"', f'"{place / name}"')
            exec(lines, {"spark": spark})
        found.append((kept("clean.parquet"), figures(Path("report.html").read_text())))
    assert 1500 < len(found[0][0]) < 4200
    for rows, drawn in found[1:]:
        assert rows.equals(found[0][0]) and drawn == found[0][1]


def test_the_page_of_the_guide_prints_what_it_shows(spark, crawl, tmp_path, guide):
    # Spark has a directory of its own where relative paths begin.
    guide("spark", {"spark": spark}, ("crawl.parquet", "clean.parquet", "checkpoints"))
    assert (tmp_path / "shards").is_dir()


def test_invalid_calls_are_rejected_before_the_work(spark, crawl, tmp_path):
    (tmp_path / "there").mkdir()
    calls = [
        (("there", {}), "already exists"),
        (("clean", {"report": tmp_path / "report.pdf"}), "must end in .html"),
        (("clean", {"text": "body"}), 'no column "body"'),
        (("clean", {"distance": 17}), "distance 17 exceeds 16"),
    ]
    for (output, given), message in calls:
        given = {"text": "content", "distance": 3} | given
        with pytest.raises(hamdex.UsageError, match=message):
            hs.dedup_file(spark, crawl, tmp_path / output, **given)
    with pytest.raises(hamdex.UsageError, match="at least"):
        hs.dedup_file(spark, [], tmp_path / "clean", distance=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.parquet", "there"]
