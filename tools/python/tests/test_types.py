"""Stubs: exactly the public names have types."""

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import hamdex
import pytest


def stubs():
    tree = ast.parse((Path(hamdex.__file__).parent / "__init__.pyi").read_text())
    return {node.name: node for node in tree.body if hasattr(node, "name")}


def test_everything_public_is_in_the_stubs():
    typed = stubs()
    for name in set(hamdex.__all__) - {"__version__"}:
        assert name in typed, name
    for name in ["Index", "Snapshot", "Pipeline", "Table", "Match", "DedupResult"]:
        members = {node.name for node in typed[name].body if hasattr(node, "name")}
        members |= {node.name for node in typed["_Searched"].body}
        members |= {
            node.target.id for node in typed[name].body if isinstance(node, ast.AnnAssign)
        }
        public = {m for m in vars(getattr(hamdex, name)) if not m.startswith("_")}
        assert public <= members, f"{name}: {public - members}"


def test_everything_public_has_a_docstring():
    for name in set(hamdex.__all__) - {"__version__"}:
        assert inspect.getdoc(getattr(hamdex, name)), name


def test_signatures_and_stubs_agree():
    for name in ["dedup", "dedup_file", "evaluate"]:
        typed, own = stubs()[name].args, inspect.signature(getattr(hamdex, name))
        assert [a.arg for a in typed.args + typed.kwonlyargs] == list(own.parameters)
    for kind in ["Index", "Snapshot", "Pipeline"]:
        functions = {
            node.name: node
            for node in stubs()[kind].body + stubs()["_Searched"].body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        }
        for name, node in functions.items():
            found = getattr(getattr(hamdex, kind), name, None)
            if found is None or not callable(found):
                continue
            wanted = [a.arg for a in node.args.args + node.args.kwonlyargs if a.arg != "self"]
            own = [p for p in inspect.signature(found).parameters if p != "self"]
            assert own == wanted, f"{kind}.{name}"


SAMPLE = """
    from pathlib import Path
    from typing_extensions import assert_type

    import hamdex
    import pandas as pd

    frame = pd.DataFrame({"text": ["a", "b"]})
    result = hamdex.dedup(frame, distance=3, keep="longest", unique_by="text", drop_empty=True)
    assert_type(result.report["not_compared"], dict[str, int])
    assert_type(hamdex.dedup(frame, source_field="text").report["sources"][0]["removed"], int)
    assert_type(result.kept, pd.DataFrame)
    assert_type(hamdex.dedup(["a", "b"]).kept, list[str])
    assert_type(result.report["settings"]["distance"], int)
    report = hamdex.dedup_file([Path("a.csv"), "b.csv"], "c.csv", report="r.html", max_bad="5%")
    assert_type(report["largest"][0]["kept_id"], str | int)
    assert_type(hamdex.fingerprint(["a", None]), list[int | None])
    with hamdex.Index.create("idx", pipeline=hamdex.Pipeline("post"), bits=64) as index:
        assert_type(index.insert("a", "text"), int)
        assert_type(index.insert(["a", 1], ["text", 0xFF], synced=False), int)
        assert_type(index.insert_if_new("a", "text"), hamdex.Match | None)
        assert_type(index.insert_if_new(["a"], ["text"]), list[hamdex.Match | None])
        assert_type(index.search("text", limit=3)[0].key, str | int | bytes)
        assert_type([len(found) for found in index.snapshot().search_batch(["a", 1])], list[int])
        print("a" in index, len(index), index.built)
    assert_type(hamdex.groups([1, None], distance=3), list[int | None])
    assert_type(hamdex.evaluate(frame, [(0, 1)])["curve"][0]["f1"], float | None)
"""


@pytest.fixture
def mypy(tmp_path):
    pytest.importorskip("mypy")

    def run(source):
        path = tmp_path / "sample.py"
        path.write_text(textwrap.dedent(source))
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
        # Whether pandas has type stubs here does not matter.
        command += ["--disable-error-code=import-untyped", path]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.stdout

    return run


def test_a_program_passes_the_strict_type_checker(mypy):
    assert mypy(SAMPLE).startswith("Success"), mypy(SAMPLE)


def test_wrong_calls_do_not_pass_the_type_checker(mypy):
    wrong = [
        "hamdex.dedup(['a'], distance='3')",
        "hamdex.dedup_file('a.csv')",
        "hamdex.dedup_file('a.csv', 'b.csv', format='avro')",
        "hamdex.fingerprint(['a'], bits=48)",
        "hamdex.Index('idx')",
        "hamdex.Index.open('idx').search(1.5)",
    ]
    found = mypy("import hamdex\n" + "\n".join(wrong) + "\n")
    lines = {line.split(":")[1] for line in found.splitlines() if ": error: " in line}
    assert lines == {str(n + 2) for n in range(len(wrong))}, found


def test_stubs_match_the_module(tmp_path):
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nignore_missing_imports = True\n")
    command = [sys.executable, "-m", "mypy.stubtest", "hamdex", "--mypy-config-file", settings]
    command.append("--ignore-disjoint-bases")
    # They have inline types, and cannot be imported without pyspark and Polars.
    allowed = tmp_path / "allowed"
    allowed.write_text("hamdex\\.spark.*\nhamdex\\.polars.*\n")
    command += ["--allowlist", allowed, "--ignore-unused-allowlist"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
