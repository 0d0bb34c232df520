"""The cases of tests/first_contact.json: folders, calls and expected results."""

import json
from pathlib import Path

FILE = Path(__file__).parents[3] / "tests" / "first_contact.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


def content(given):
    """Returns the bytes of a file, given as lines or as hexadecimal digits."""
    return bytes.fromhex(given["hex"]) if isinstance(given, dict) else "\n".join(given).encode()


def lay_out(case, place):
    """Creates the folder of a case; returns the paths of its files, in order."""
    for name, given in case["files"].items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content(given))
    return sorted(place / name for name in case["files"])
