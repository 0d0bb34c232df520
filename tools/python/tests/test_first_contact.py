"""First contact: the folders of tests/first_contact, through `dedup_file`."""

import json
import os
import shutil
from pathlib import Path

import hamdex
import pytest

FOLDERS = Path(__file__).parents[3] / "tests" / "first_contact"
NAMES = sorted(path.name for path in FOLDERS.iterdir())

#: Options of the command line that have another name here.
KEYWORDS = {"text-field": "text", "id-field": "id"}

#: Options that `dedup_file` does not have.
MISSING = {"hidden"}


def test_there_are_folders():
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_every_folder_comes_out_as_its_table_says(name, tmp_path, monkeypatch):
    case = json.loads((FOLDERS / name / "case.json").read_text())
    if MISSING & case["options"].keys():
        pytest.skip("an option of the command line alone")
    shutil.copytree(FOLDERS / name / "input", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    options = {KEYWORDS.get(key, key.replace("-", "_")): value for key, value in case["options"].items()}
    expect = case["expect"]
    if expect["status"]:
        error = hamdex.DataError if expect["status"] == 3 else hamdex.UsageError
        with pytest.raises(error):
            hamdex.dedup_file(case["inputs"], "out", **options)
        assert not os.path.exists("out")
        return
    report = hamdex.dedup_file(case["inputs"], "out", **options)
    for key, value in expect.items():
        if key not in ("status", "kept_ids"):
            assert report[key] == value, key
    assert report["rows"] == report["kept"] + report["removed"] + report["rejects"]
    kept = [json.loads(line) for line in Path("out/kept.jsonl").read_text().splitlines()]
    assert len(kept) == report["kept"]
    if "kept_ids" in expect:
        assert [row["id"] for row in kept] == expect["kept_ids"]
