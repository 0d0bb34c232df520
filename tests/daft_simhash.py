#!/usr/bin/env python3
"""Plain SimHash equals Daft's simhash on 10,000 texts.

Usage: tests/daft_simhash.py [TEXTS.jsonl[.gz]]

Compares `hamdex fingerprint --segment raw --ngram 3 --weights tf` with `daft.functions.simhash`
(character 3-grams, XXH3-64) on texts in many scripts generated from a seed, and on those of the
given files. Prints a message and stops if Daft is not installed.

Skips texts for which one of the two has no fingerprint: Daft returns 0 for texts of fewer than
three characters, and hamdex finds no features in texts of only white space.
"""

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

COUNT = 10_000
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz     ",
    "ABCdef 0123456789.,;:!?-_\t\n",
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动，。！？",
    "あいうえおかきくけこカキクケコ漢字。 ",
    "שלום עולם אבגדהוזחט",
    "ا ب ت ث ج ح خ د ذ ر",
    "e\u0301a\u0300o\u0308 z\u0335\u0321",
    "\U0001f600\U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "aa ab",
    "\u0000x ",
]


def made():
    rng = random.Random(7)
    for _ in range(COUNT):
        alphabet = rng.choice(ALPHABETS)
        if rng.random() < 0.2:
            alphabet += rng.choice(ALPHABETS)
        yield "".join(rng.choices(alphabet, k=rng.choice([3, 4, 5, 20, 140, 140, 1000])))


def read(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as lines:
        for line in lines:
            yield json.loads(line)["text"]


def of_hamdex(program, texts):
    rows = "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts))
    command = [program, "fingerprint", "-", "--quiet"]
    command += ["--segment", "raw", "--ngram", "3", "--weights", "tf"]
    done = subprocess.run(command, input=rows.encode(), capture_output=True, check=True)
    found = map(json.loads, done.stdout.splitlines())
    return {row["id"]: int(row["fingerprint"], 16) for row in found}


def main():
    try:
        import daft
        from daft.functions import simhash
    except ImportError:
        print("skipped: Daft is not installed (pip install daft)")
        return 0
    root = Path(__file__).resolve().parents[1]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = os.environ.get("HAMDEX", str(target / "release" / "hamdex"))
    if not Path(program).exists():
        print(f"{program} is missing: run cargo build --release -p hamdex-cli, or set HAMDEX")
        return 1
    texts = [text for path in sys.argv[1:] for text in read(path)] + list(made())
    texts = [text for text in texts if len(text) >= 3 and text.strip()]
    table = daft.from_pydict({"text": texts})
    theirs = table.select(simhash(daft.col("text"), ngram_size=3).alias("s")).to_pydict()["s"]
    ours = of_hamdex(program, texts)
    differing = [n for n, value in enumerate(theirs) if ours.get(n) != value]
    for n in differing[:5]:
        print(f"{texts[n][:60]!r}: Daft {theirs[n]:016x}, hamdex {ours.get(n, 0):016x}")
    print(f"{len(texts)} texts, {len(differing)} differ")
    return 1 if differing or len(texts) < COUNT * 0.9 else 0


if __name__ == "__main__":
    sys.exit(main())
