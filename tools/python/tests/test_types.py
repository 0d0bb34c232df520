"""Stubs: everything public has types, and nothing else."""

import ast
import inspect
from pathlib import Path

import hamdex


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


def test_everything_public_says_what_it_does():
    for name in set(hamdex.__all__) - {"__version__"}:
        assert inspect.getdoc(getattr(hamdex, name)), name


def test_signatures_and_stubs_agree():
    for name in ["dedup", "evaluate"]:
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
