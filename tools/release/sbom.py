"""Writes the crates of a release as CycloneDX: names, versions, licences and checksums."""

import json
import sys
import tomllib

from crates import PROJECT, crates


def main() -> None:
    lock = tomllib.loads((PROJECT / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    # What is needed to build is in the list, what only tests need is not.
    packages = crates((None, "build"))
    components = []
    for package in packages:
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
    own = next(package for package in packages if package["name"] == "hamdex")
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
