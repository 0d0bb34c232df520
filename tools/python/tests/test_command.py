"""The command line in the package."""

import json
import os
import signal
import subprocess
import sys

import hamdex


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
