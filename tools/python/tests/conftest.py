"""Data of the tests, made or of tests/first_contact.json, and the command line to compare with."""

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest

WORDS = (
    "harbour council evening growth farmers bridge winter market station weather doctors music "
    "village engine budget school library forest coast museum railway garden election history "
    "公园 天气 电影 地铁 手机 孩子 餐厅 考试 咖啡 球赛"
).split()


FILE = Path(__file__).parents[3] / "tests" / "first_contact.json"
#: Folders, calls and expected results.
CASES = json.loads(FILE.read_text(encoding="utf-8"))

def made(count, seed=11):
    """Posts, a third of which differ from an earlier one in a few words or punctuation marks."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        if texts and rng.random() < 0.35:
            words = rng.choice(texts).split(" ")
            for _ in range(rng.choice([0, 0, 1, 1, 2])):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
            text = " ".join(words) + rng.choice(["", "!", " …", "?!"])
        else:
            text = " ".join(rng.choices(WORDS, k=rng.randrange(9, 30)))
        texts.append(text)
    ids = [f"p{n}" for n in range(count)]
    dates = [f"2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}" for _ in texts]
    return {"id": ids, "text": texts, "date": dates}


@pytest.fixture(scope="session")
def posts():
    return made(3000)


@pytest.fixture(scope="session")
def program():
    """The command line, built from the same sources."""
    root = Path(__file__).resolve().parents[3]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = os.environ.get("HAMDEX", str(target / "release" / "hamdex"))
    if not Path(program).exists():
        pytest.skip(f"{program} is not there: cargo build --release -p hamdex-cli")
    return program


def jsonl(path, columns):
    names = list(columns)
    with open(path, "w", encoding="utf-8") as lines:
        for row in zip(*columns.values()):
            lines.write(json.dumps(dict(zip(names, row)), ensure_ascii=False) + "\n")
    return path


def read_jsonl(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture
def cli(program, tmp_path):
    """Runs `hamdex dedup` on columns and returns the written results."""

    def run(columns, *options):
        source, out = jsonl(tmp_path / "rows.jsonl", columns), tmp_path / "out"
        command = [program, "dedup", str(source), "-o", str(out), "--quiet", *options]
        subprocess.run(command, check=True, capture_output=True)
        names = ["kept", "duplicates", "clusters"]
        files = {name: read_jsonl(out / f"{name}.jsonl") for name in names}
        return files | {"report": json.loads((out / "report.json").read_text())}

    return run


@pytest.fixture
def guide(tmp_path, monkeypatch, capsys):
    """Runs the Python of a page of the guide and compares what it prints with what the page shows.

    `paths` are names in the page that become paths in the test's directory.
    """

    def run(page, names, paths=()):
        place = Path(__file__).resolve().parents[3] / "src" / "guide" / f"{page}.md"
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", place.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        monkeypatch.chdir(tmp_path)
        printed = []
        for number, (kind, lines) in enumerate(blocks):
            if kind != "python":
                continue
            for name in paths:
                lines = lines.replace(f'"{name}"', f'"{tmp_path / name}"')
            capsys.readouterr()
            exec(lines, names)
            printed.append(capsys.readouterr().out)
            following = [*blocks[number + 1 :], ("", "")][0]
            assert printed[-1] == (following[1] if following[0] == "text" else "")
        assert sum(map(bool, printed)) > 1

    return run


def content(given):
    """Returns the bytes of a file, given as lines or as hexadecimal digits."""
    return bytes.fromhex(given["hex"]) if isinstance(given, dict) else "\n".join(given).encode()


def lay_out(case, place):
    """Creates the folder of a case; returns the paths of its files, in order."""
    for name, given in case["files"].items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content(given))
    return sorted(place / name for name in case["files"])
