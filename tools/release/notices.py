"""Writes the licences of what a release is linked from, each text once, with the crates it is of.

Most of these licences ask that copies of the program come with their text.
"""

import re
import sys
from pathlib import Path

from crates import PROJECT, crates

LICENCE = re.compile(r"((un)?licen[cs]e|copying|copyright|notice)s?([^a-z].*)?", re.IGNORECASE)
SOURCE = re.compile(r".*\.(rs|py|toml|html|c|h|cc)", re.IGNORECASE)
# A crate that offers one of these needs no text of another one, in this order.
PREFERRED = ("MIT", "APACHE")


def is_licence(path: Path) -> bool:
    named = LICENCE.fullmatch(path.name) or path.parent.name == "LICENSES"
    if not (path.is_file() and named) or SOURCE.fullmatch(path.name):
        return False
    # RocksDB and zstd have another licence beside GNU's, and only programs of xz have GNU's.
    beginning = path.read_text(encoding="utf-8", errors="replace")[:200]
    return not (path.name.startswith("COPYING") and "GENERAL PUBLIC LICENSE" in beginning)


def texts(package: dict) -> list[Path]:
    """Returns the files with the licences of a crate, and of C sources that it contains."""
    root = Path(package["manifest_path"]).parent
    within = [path for pattern in ("*", "*/*") for path in sorted(root.glob(pattern))]
    files = [path for path in within if is_licence(path)]
    own = [path for path in files if path.parent == root]
    terms = (package["license"] or "").replace("/", " OR ")
    if " OR " in terms and " AND " not in terms:
        for name in PREFERRED:
            if chosen := [path for path in own if name in path.name.upper()]:
                notices = [path for path in own if path.name.upper().startswith("NOTICE")]
                return chosen + notices + [path for path in files if path.parent != root]
    return files


def main() -> None:
    of_text: dict[str, list[str]] = {}
    without = []
    for package in crates((None,)):
        if Path(package["manifest_path"]).is_relative_to(PROJECT):
            continue
        name = f"{package['name']} {package['version']}"
        found = texts(package)
        if not found:
            authors = ", ".join(package["authors"]) or "its authors"
            without.append(f"{name} by {authors}: {package['license']}")
        root = Path(package["manifest_path"]).parent
        for path in found:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            part = f"{name} ({path.parent.name})" if path.parent != root else name
            of_text.setdefault(text, []).append(part)
    print("hamdex is linked from the parts below, which have these licences.")
    for text, parts in sorted(of_text.items(), key=lambda item: item[1]):
        print(f"\n{'=' * 80}\n{', '.join(parts)}\n{'-' * 80}\n\n{text}")
    print(f"\n{'=' * 80}\nParts whose packages contain no text of their licence\n{'-' * 80}\n")
    print("\n".join(without))
    # Without this one, what was looked for is not where it was.
    if not any("(rocksdb)" in part for parts in of_text.values() for part in parts):
        sys.exit("notices: the licence of RocksDB was not found")


main()
