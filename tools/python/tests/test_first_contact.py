"""First contact: the folders of tests/first_contact.json, through `dedup_file`."""

import json
import os
from pathlib import Path

import hamdex
import pytest

from conftest import CASES, lay_out

#: Options of the command line with another name in Python.
KEYWORDS = {"text-field": "text", "id-field": "id"}

#: Cases with options that `dedup_file` does not have are skipped.
NAMES = [name for name, case in CASES.items() if "hidden" not in case["options"]]


def test_there_are_folders():
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_every_folder_has_the_expected_result(name, tmp_path, monkeypatch):
    case = CASES[name]
    lay_out(case, tmp_path)
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
