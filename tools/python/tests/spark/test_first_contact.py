"""First contact on a cluster: the row rules apply to the same folders."""

import json
import subprocess
from functools import reduce
from pathlib import PurePath

import pyarrow.parquet as pq
import pytest

from conftest import CASES, content, lay_out

hs = pytest.importorskip("hamdex.spark", reason="no Spark here", exc_type=ImportError)

#: Folders that cannot be a frame: mixed column types, names or delimiters, or fingerprints
#: instead of some texts.
ELSEWHERE = {
    "csv_with_semicolons",
    "fingerprints_beside_null_texts",
    "one_field_in_each_file",
    "texts_that_are_numbers",
}


def is_of_rows(name):
    """Returns true if Spark can read the case: valid rows of JSON Lines or CSV."""
    case = CASES[name]
    rows = {".jsonl", ".csv"}
    files = case["files"]
    return (
        case["expect"]["status"] == 0
        and case["expect"]["rows"] > 0
        and case["expect"]["rejects"] in (0, case["expect"].get("not_compared", 0))
        and all(PurePath(file).suffix in rows for file in files)
        # Bytes that Spark's readers decode differently.
        and not any(content(given).startswith(b"\xef\xbb\xbf") for given in files.values())
        and name not in ELSEWHERE
    )


NAMES = [name for name in CASES if is_of_rows(name)]

#: Options of the command line and their names in Spark.
KEYWORDS = {"keep": "keep", "unique-by": "unique_by", "drop-empty": "drop_empty"}


def test_there_are_folders_of_rows():
    assert len(NAMES) >= 12, NAMES


@pytest.mark.parametrize("name", [*NAMES, "empty_texts_dropped"])
def test_a_folder_gives_the_rows_of_the_command_line(spark, program, tmp_path, name):
    case = CASES[name]
    # Rows are in file order for any ids.
    files = lay_out(case, tmp_path / "input")
    inputs = [str(tmp_path / "input" / path) for path in case["inputs"]]
    options = [
        f"--{key}" if value is True else f"--{key}={value}" for key, value in case["options"].items()
    ]
    settings = ["--pipeline", "post", "-k", "14", "--verify", "edit:0.8", "--quiet"]
    command = [program, "dedup", *inputs, "-o", str(tmp_path / "out"), *settings, *options]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    lines = (tmp_path / "out" / "kept.jsonl").read_text().splitlines()

    frames = [
        spark.read.csv(str(path), header=True) if path.suffix == ".csv" else spark.read.json(str(path))
        for path in files
    ]
    frame = reduce(lambda a, b: a.unionByName(b), frames).coalesce(1)
    known = [field for field in ("text", "content", "data", "title") if field in frame.columns]
    text = case["options"].get("text-field", known[0])
    given = {KEYWORDS[key]: value for key, value in case["options"].items() if key in KEYWORDS}
    frame = frame.selectExpr("*", "monotonically_increasing_id() AS row_id")
    frame.write.parquet(str(tmp_path / "rows"))
    summary = hs.dedup_file(
        spark, tmp_path / "rows", tmp_path / "kept", text, "row_id", distance=14, pipeline="post",
        verify="edit:0.8", **given,
    )  # fmt: skip
    for count in ("rows", "documents", "kept", "removed", "removed_unique_by", "not_compared"):
        assert summary[count] == report[count], count
    assert summary["rows"] == summary["kept"] + summary["removed"] + summary["rejects"]
    kept = pq.read_table(tmp_path / "kept").sort_by("row_id")
    assert len(kept) == len(lines) == summary["kept"]
    column = text.split(",")[0].split(".")[0]
    expected = [json.loads(line).get(column) for line in lines]
    assert kept.column(column).to_pylist() == expected
