"""The crates that the programs and libraries of a release are made of."""

import json
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
PARTS = ["hamdex-cli", "hamdex-c", "hamdex-python"]


def crates(kinds: tuple[str | None, ...]) -> list[dict]:
    """Returns cargo's description of each crate that is reached by dependencies of these kinds.

    The kind of an ordinary dependency is None, that of a build script's is "build".
    """
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line[6:] for line in host.splitlines() if line.startswith("host: "))
    command += ["--filter-platform", host, "--features", "hamdex-cli/png"]
    out = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(out)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] in PARTS]
    reached: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in reached:
            continue
        reached.add(key)
        for dependency in nodes[key]["deps"]:
            if any(kind["kind"] in kinds for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return sorted((packages[key] for key in reached), key=lambda p: (p["name"], p["version"]))
