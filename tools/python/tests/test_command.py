"""The command line in the package, and the folders of tests/first_contact.json through `dedup_file`."""

import json
import os
import signal
import subprocess
import sys
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


def command(place, *arguments):
    # In another directory, because the sources of the package would be imported here.
    return subprocess.run(
        [sys.executable, "-m", "hamdex", *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=place,
    )


def test_the_package_includes_the_command_line(tmp_path):
    assert command(tmp_path, "--version").stdout == f"hamdex {hamdex.__version__}\n"
    demo = command(tmp_path, "demo", "--json")
    assert demo.returncode == 0, demo
    assert json.loads(demo.stdout)["removed"] == 14
    assert (tmp_path / "hamdex-demo" / "report.html").exists()


def test_statuses_and_codes_equal_those_of_the_program(tmp_path):
    refused = command(tmp_path, "demo", "--colour", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stderr)["error"]["code"] == "usage"
    missing = command(tmp_path, "stats", "none.idx", "--json")
    assert missing.returncode == 6, missing
    assert json.loads(missing.stderr)["error"]["code"] == "not-found", missing
    # After two hyphens nothing is an option.
    assert not command(tmp_path, "demo", "--colour", "--", "--json").stderr.startswith("{")


def test_ctrl_c_exits_with_130_and_without_a_traceback(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(
        [sys.executable, "-m", "hamdex", "dedup", "pipe", "-o", "out", "--input-format", "jsonl"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        # Background jobs of a script ignore Ctrl-C, and so does the program.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with open(tmp_path / "pipe", "w") as pipe:
        # The other end is open, so the program handles signals.
        pipe.write('{"text":"one"}\n')
        pipe.flush()
        reader.send_signal(signal.SIGINT)
        _, said = reader.communicate(timeout=60)
    assert reader.returncode == 130, said
    assert "Traceback" not in said and "KeyboardInterrupt" not in said, said
    assert sorted(os.listdir(tmp_path)) == ["pipe"]
