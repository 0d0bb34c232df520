#!/usr/bin/env python3
"""Measure Python packages that fingerprint texts, on one thread.

Usage: tools/peers/fingerprint_peers.py < TEXTS.jsonl

Reads JSON Lines, each a string. Prints a line for each measurement: its name, a tab, and megabytes
of text (UTF-8) per second, the best of three passes. `hamdex-bench text --python` runs this on the
first texts of its corpus.

  simhash      the package simhash, 64 bits, over words and over character 4-grams
  datasketch   MinHash with 256 permutations over distinct words and distinct character 4-grams

For a package that is not installed, the line says so.
Needs: pip install simhash datasketch.
"""

import json
import re
import sys
import time

REPEATS = 3
PERMUTATIONS = 256
WORD = re.compile(r"\w+")


def words(text):
    return WORD.findall(text.lower())


def grams(text):
    text = text.lower()
    return [text[at : at + 4] for at in range(max(len(text) - 3, 1))]


def simhash_methods():
    from simhash import Simhash

    for name, cut in (("words", words), ("character 4-grams", grams)):
        yield f"simhash, {name}", lambda text, cut=cut: Simhash(cut(text)).value


def datasketch_methods():
    from datasketch import MinHash

    for name, cut in (("words", words), ("character 4-grams", grams)):

        def sign(text, cut=cut):
            sketch = MinHash(num_perm=PERMUTATIONS)
            sketch.update_batch([feature.encode() for feature in set(cut(text))])
            return sketch

        yield f"datasketch MinHash of {PERMUTATIONS}, {name}", sign


def main():
    texts = [json.loads(line) for line in sys.stdin]
    size = sum(len(text.encode()) for text in texts)
    for methods in (simhash_methods, datasketch_methods):
        try:
            for name, sign in methods():
                best = float("inf")
                for _ in range(REPEATS):
                    start = time.perf_counter()
                    for text in texts:
                        sign(text)
                    best = min(best, time.perf_counter() - start)
                print(f"{name}\t{size / best / 1e6:.1f} MB/s", flush=True)
        except ImportError as missing:
            print(f"{missing.name}\tnot installed: pip install {missing.name}", flush=True)


if __name__ == "__main__":
    main()
