#!/usr/bin/env python3
"""Compare hamdex with Python packages on labelled near-duplicates.

Usage: tools/peers/evaluate_peers.py CORPUS.jsonl.gz PAIRS.tsv NEAR IGNORE [...]

Each corpus takes four arguments: JSON Lines with "id" and "text" (.gz or plain); lines of two ids
and a similarity, separated by tabs; the minimum similarity of near-duplicates; and the minimum
similarity of pairs that are not counted. Pairs without a similarity are near-duplicates.

Measures each method at its best setting, in one run on the same texts:
  simhash      the package simhash, 64 bits, over words and character n-grams, best distance
  datasketch   MinHash with 256 permutations on character 4-grams, best threshold
  jaccard      exact Jaccard similarity of character 4-grams, best threshold
  hamdex       the settings it chooses, and the best of each kind of verification
Peers get the texts in lower case, unchanged and cleaned as the labels were (without links,
mentions and RT); the better result counts.

Needs: pip install numpy simhash datasketch. The program is target/release/hamdex, or $HAMDEX.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, product
from pathlib import Path

try:
    import numpy as np
    from datasketch import MinHash
    from simhash import Simhash
except ImportError as missing:
    sys.exit(f"needs {missing.name}: pip install numpy simhash datasketch")

STEPS = 200
"""Number of thresholds between similarity 0 and 1."""

PERMUTATIONS = 256
BLOCK = 256
NOISE = re.compile(r"https?://\S+|@\w+:?|\brt\b")
SPACE = re.compile(r"\s+")


def read_corpus(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as lines:
        rows = [json.loads(line) for line in lines]
    return [str(row["id"]) for row in rows], [row["text"] for row in rows]


def read_labels(path, ids, near_from, ignored_from):
    """Return near and ignored pairs of positions."""
    position = {name: at for at, name in enumerate(ids)}
    near, ignored = set(), set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            a, b, *rest = line.rstrip("\n").split("\t")
            if a not in position or b not in position or a == b:
                continue
            pair = tuple(sorted((position[a], position[b])))
            similarity = float(rest[0]) if rest else 1.0
            if similarity >= near_from:
                near.add(pair)
            elif similarity >= ignored_from:
                ignored.add(pair)
    return near, ignored


def raw(text):
    return SPACE.sub(" ", text.lower()).strip()


def cleaned(text):
    return SPACE.sub(" ", NOISE.sub(" ", text.lower())).strip()


def grams(text, n):
    return [text[at : at + n] for at in range(max(len(text) - n + 1, 1))]


class Curve:
    """Counts of pairs by step of similarity, highest similarity first."""

    def __init__(self, found, step_of, near, ignored):
        self.found = found.astype(np.int64)
        self.correct = np.zeros_like(self.found)
        for pair in near:
            self.correct[step_of(*pair)] += 1
        for pair in ignored:
            self.found[step_of(*pair)] -= 1
        self.positives = len(near)

    def best(self):
        """Return step, precision, recall and F1 at the highest F1."""
        found, correct = np.cumsum(self.found), np.cumsum(self.correct)
        f1 = 2 * correct / np.maximum(found + self.positives, 1)
        at = int(np.argmax(f1))
        return at, correct[at] / max(found[at], 1), correct[at] / max(self.positives, 1), f1[at]


def one_simhash(job):
    text, tokens, distinct = job
    features = re.findall(r"\w+", text) if tokens == "words" else grams(text, tokens)
    # A list, because weights above 50 overflow in the package under numpy 2.
    return Simhash(sorted(set(features)) if distinct else features).value & (2**64 - 1)


def curve_of_fingerprints(fingerprints, near, ignored):
    found = np.zeros(65, dtype=np.int64)
    for at, one in enumerate(fingerprints[:-1]):
        distances = np.bitwise_count(fingerprints[at + 1 :] ^ one)
        found += np.bincount(distances, minlength=65)
    step_of = lambda a, b: int(fingerprints[a] ^ fingerprints[b]).bit_count()
    return Curve(found, step_of, near, ignored)


def step_of_similarity(similarity):
    """Return the step of a similarity; step 0 is similarity 1."""
    return STEPS - np.floor(similarity * STEPS + 1e-6).astype(np.int64)


def one_minhash(text):
    sketch = MinHash(num_perm=PERMUTATIONS)
    sketch.update_batch([gram.encode() for gram in set(grams(text, 4))])
    return sketch.hashvalues


def curve_of_minhashes(signatures, near, ignored):
    """Compare all signatures; ranks replace the values of each column, which keeps equality."""
    columns = np.stack(
        [np.unique(column, return_inverse=True)[1] for column in signatures.T]
    ).astype(np.uint32)
    count = signatures.shape[0]
    found = np.zeros(STEPS + 1, dtype=np.int64)
    for start in range(0, count, BLOCK):
        rows = min(BLOCK, count - start)
        equal = np.zeros((rows, count - start), dtype=np.uint16)
        for column in columns:
            equal += column[start : start + rows, None] == column[None, start:]
        later = np.triu(np.ones(equal.shape, dtype=bool), 1)
        steps = step_of_similarity(equal[later] / PERMUTATIONS)
        found += np.bincount(steps, minlength=STEPS + 1)
    step_of = lambda a, b: int(step_of_similarity(np.mean(signatures[a] == signatures[b])))
    return Curve(found, step_of, near, ignored)


def curve_of_sets(texts, near, ignored):
    """Count shared 4-grams of all pairs by an inverted index."""
    numbers = {}
    sets = [
        np.array(sorted({numbers.setdefault(gram, len(numbers)) for gram in grams(text, 4)}))
        for text in texts
    ]
    sizes = np.array([len(one) for one in sets])
    order = np.argsort(np.concatenate(sets), kind="stable")
    owners = np.repeat(np.arange(len(sets)), sizes)[order]
    starts = np.searchsorted(np.concatenate(sets)[order], np.arange(len(numbers) + 1))
    found = np.zeros(STEPS + 1, dtype=np.int64)
    for at, one in enumerate(sets):
        postings = np.concatenate([owners[starts[n] : starts[n + 1]] for n in one])
        shared = np.bincount(postings, minlength=len(sets))[at + 1 :]
        similarity = shared / (sizes[at] + sizes[at + 1 :] - shared)
        found += np.bincount(step_of_similarity(similarity), minlength=STEPS + 1)

    def step_of(a, b):
        shared = len(np.intersect1d(sets[a], sets[b], assume_unique=True))
        return int(step_of_similarity(np.float64(shared / (sizes[a] + sizes[b] - shared))))

    return Curve(found, step_of, near, ignored)


def best_of(candidates):
    """Return the best setting; candidates are descriptions of settings and their curves."""
    results = [(words, *curve.best()) for words, curve in candidates]
    return max(results, key=lambda result: result[-1])


def peers(texts, near, ignored, pool):
    """Yield method, setting, precision, recall and F1 of the peers."""
    variants = {"raw": [raw(text) for text in texts], "cleaned": [cleaned(text) for text in texts]}

    def simhashes():
        for name, given in variants.items():
            for tokens, distinct in product(("words", 2, 3, 4), (False, True)):
                jobs = [(text, tokens, distinct) for text in given]
                values = list(pool.map(one_simhash, jobs, chunksize=64))
                label = tokens if tokens == "words" else f"{tokens}-grams"
                label = f"distinct {label}" if distinct else label
                curve = curve_of_fingerprints(np.array(values, dtype=np.uint64), near, ignored)
                yield f"{name}, {label}", curve

    def minhashes():
        for name, given in variants.items():
            values = np.stack(list(pool.map(one_minhash, given, chunksize=64)))
            yield f"{name}, 4-grams", curve_of_minhashes(values, near, ignored)

    def jaccards():
        for name, given in variants.items():
            yield f"{name}, 4-grams", curve_of_sets(given, near, ignored)

    words, step, *shares = best_of(simhashes())
    yield "simhash 64 bit", f"{words}, k {step}", shares
    words, step, *shares = best_of(minhashes())
    yield "datasketch 256", f"{words}, cut {1 - step / STEPS:.3f}", shares
    words, step, *shares = best_of(jaccards())
    yield "exact Jaccard", f"{words}, cut {1 - step / STEPS:.3f}", shares


def hamdex(program, corpus, pairs, near_from, ignored_from):
    """Yield method, setting, precision, recall and F1 of `hamdex evaluate`."""
    command = [program, "evaluate", corpus, "--pairs", pairs, "--json", "--quiet"]
    with open(pairs, encoding="utf-8") as lines:
        if lines.readline().count("\t") > 1:
            command += ["--min-similarity", near_from, "--ignore-above", ignored_from]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    for figure in map(json.loads, lines):
        if figure["what"] in ("best", "default"):
            setting = f"k {figure['distance']}, {figure['verification']}"
            shares = [figure[name] or 0.0 for name in ("precision", "recall", "f1")]
            yield f"hamdex {figure['what']}", setting, shares


def find_program():
    root = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = os.environ.get("HAMDEX", str(target / "release" / "hamdex"))
    if not Path(program).exists():
        sys.exit(f"{program} not found; run cargo build --release -p hamdex-cli, or set HAMDEX")
    return program


def main(arguments):
    if not arguments or len(arguments) % 4:
        sys.exit(__doc__)
    program = find_program()
    print(f"{'corpus':16} {'method':16} {'setting':36} precision  recall      F1  seconds")
    with ProcessPoolExecutor() as pool:
        for at in range(0, len(arguments), 4):
            corpus, pairs, near_from, ignored_from = arguments[at : at + 4]
            ids, texts = read_corpus(corpus)
            near, ignored = read_labels(pairs, ids, float(near_from), float(ignored_from))
            started = time.monotonic()
            results = peers(texts, near, ignored, pool)
            own = hamdex(program, corpus, pairs, near_from, ignored_from)
            for method, setting, (precision, recall, f1) in chain(results, own):
                seconds = time.monotonic() - started
                name = Path(corpus).name.split(".")[0]
                print(
                    f"{name:16} {method:16} {setting:36} {precision:9.4f} {recall:7.4f} "
                    f"{f1:7.4f} {seconds:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
