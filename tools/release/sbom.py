"""Writes the crates of a release as CycloneDX: names, versions, licences and checksums."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
PARTS = ["hamdex-cli", "hamdex-c", "hamdex-python"]


def main() -> None:
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line[6:] for line in host.splitlines() if line.startswith("host: "))
    command += ["--filter-platform", host, "--features", "hamdex-cli/png"]
    out = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(out)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    lock = tomllib.loads((PROJECT / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}

    # What is needed to build is in the list, what only tests need is not.
    waiting = [key for key, package in packages.items() if package["name"] in PARTS]
    reached: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in reached:
            continue
        reached.add(key)
        for dependency in nodes[key]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])

    components = []
    for package in sorted((packages[key] for key in reached), key=lambda p: (p["name"], p["version"])):
        name, version = package["name"], package["version"]
        component = {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:cargo/{name}@{version}",
        }
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := checksums.get((name, version)):
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    own = next(package for package in metadata["packages"] if package["name"] == "hamdex")
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "hamdex", "version": own["version"]}
        },
        "components": components,
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


main()
