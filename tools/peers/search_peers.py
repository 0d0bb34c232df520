#!/usr/bin/env python3
"""Measure one Python package at Hamming search and print figures as JSON Lines.

Usage: search_peers.py --engine NAME --data FILE --count N --queries DIR --dir DIR
                       --distances 1,2,3 --repetitions R --budget SECONDS

hamdex-bench runs this for every package and size, and reads its output. Data and queries are raw
little-endian 64-bit fingerprints. Single queries use one thread; builds use the threads that the
package chooses; batches are measured on one thread and on all.

Needs: pip install faiss-cpu numpy simhash. A missing package gives a line in the report, not a
failure.
"""

import argparse
import json
import sys
import time
from pathlib import Path

try:
    import numpy as np
except ImportError:
    np = None

MAIN_DISTANCE = 3
MOST_SINGLE = 10_000
BUILDING = 40
PERCENTILES = (("median_us", 500, 1), ("p99_us", 990, 100), ("p999_us", 999, 1000))
GOLDEN = 0x9E3779B97F4A7C15


class Faiss:
    """Base class of the binary indexes of faiss-cpu."""

    def __init__(self, data):
        import faiss

        self.faiss, self.data = faiss, data
        self.cores = faiss.omp_get_max_threads()
        self.index = self.make(len(data))
        self.index.add(data.view(np.uint8).reshape(-1, 8))

    def threads(self, count):
        self.faiss.omp_set_num_threads(count)

    def prepare(self, distance):
        """Configure the index to be complete at this distance."""

    def batch(self, queries, distance):
        # The radius of range_search is exclusive.
        return self.index.range_search(queries.view(np.uint8).reshape(-1, 8), distance + 1)

    def search(self, query, distance):
        return self.batch(query, distance)

    def found(self, answers):
        """Return query numbers and fingerprints of all matches in a list of answers."""
        numbers, found, first = [], [], 0
        for limits, _, ids in answers:
            counts = np.diff(limits.astype(np.int64))
            numbers.append(np.repeat(np.arange(first, first + len(counts)), counts))
            found.append(self.data[ids])
            first += len(counts)
        return np.concatenate(numbers), np.concatenate(found)


class Flat(Faiss):
    note = "linear scan; in memory"

    def make(self, _):
        return self.faiss.IndexBinaryFlat(64)

    def answers(self, distance):
        return True


class Hash(Faiss):
    note = "one hash of about log2 n bits, all flips of up to k of them; in memory"

    def make(self, count):
        return self.faiss.IndexBinaryHash(64, min(max(round(np.log2(count)), 12), 24))

    def answers(self, distance):
        return distance <= 4

    def prepare(self, distance):
        self.index.nflip = distance


class MultiHash(Faiss):
    note = "4 hashes of 16 bits, flips of up to k / 4 of each; in memory"

    def make(self, _):
        return self.faiss.IndexBinaryMultiHash(64, 4, 16)

    def answers(self, distance):
        return distance <= 12

    def prepare(self, distance):
        self.index.nflip = distance // 4


class Simhash:
    """The package simhash, whose index keeps sets of strings."""

    cores = 1
    note = "4 blocks of 16 bits; Python, in memory"

    def __init__(self, data):
        from simhash import Simhash as Value, SimhashIndex

        self.value, self.data = Value, data
        items = [(str(row), Value(int(f))) for row, f in enumerate(data)]
        self.index = SimhashIndex(items, k=MAIN_DISTANCE)

    def threads(self, count):
        pass

    def prepare(self, distance):
        pass

    def answers(self, distance):
        return distance == MAIN_DISTANCE

    def search(self, query, _):
        return self.index.get_near_dups(self.value(int(query[0])))

    batch = None

    def found(self, answers):
        rows = [[int(name) for name in names] for names in answers]
        numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        return numbers, self.data[np.array([r for row in rows for r in row], dtype=np.int64)]


ENGINES = {
    "FAISS BinaryFlat": ("faiss", Flat),
    "FAISS BinaryHash": ("faiss", Hash),
    "FAISS MultiHash 4 x 16": ("faiss", MultiHash),
    "simhash (Python)": ("simhash", Simhash),
}


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def checks(numbers, found, count):
    """Return digests of the first 10, 100, ... answers and of all, equal to those in Rust."""
    order = np.lexsort((found, numbers))
    numbers, found = numbers[order].astype(np.uint64), found[order]
    fresh = np.ones(len(found), dtype=bool)
    fresh[1:] = (numbers[1:] != numbers[:-1]) | (found[1:] != found[:-1])
    numbers, found = numbers[fresh], found[fresh]
    hashes = mix(found + (numbers + np.uint64(1)) * np.uint64(GOLDEN))
    sizes = [10**power for power in range(1, 10) if 10**power < count] + [count]
    rows = []
    for size in sizes:
        some = hashes[: np.searchsorted(numbers, size)]
        rows.append([size, len(some), f"{int(np.sum(some, dtype=np.uint64)):016x}"])
    return rows


def memory(field):
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return float(line.split()[1]) * 1024
    return 0.0


class Bench:
    def __init__(self, args):
        self.args = args
        self.data = np.fromfile(args.data, dtype="<u8", count=args.count)
        self.engine = None
        self.before = 0.0

    def show(self, work, **more):
        row = {"engine": self.args.engine, "work": work, "n": self.args.count, "threads": 1}
        print(json.dumps(row | more), flush=True)

    def queries(self, name, most=-1):
        return np.fromfile(Path(self.args.queries, f"{name}.u64"), dtype="<u8", count=most)

    def build(self, kind):
        # The import is not measured.
        kind(self.data[:100])
        seconds, size, self.before = [], None, memory("VmRSS:")
        most = BUILDING * self.args.budget
        while True:
            self.engine = None
            start = time.perf_counter()
            self.engine = kind(self.data)
            seconds.append(time.perf_counter() - start)
            size = memory("VmRSS:") - self.before if size is None else size
            if len(seconds) >= self.args.repetitions or sum(seconds) + seconds[-1] > most:
                break
        figures = {"seconds": seconds, "memory_bytes": [max(size, 0.0)], "disk_bytes": [0.0]}
        threads = self.engine.cores
        self.show("build", count=len(self.data), figures=figures, threads=threads, note=kind.note)

    def affordable(self, queries, answer):
        count, warm = 10, False
        while True:
            start = time.perf_counter()
            answers = answer(queries[:count])
            slow = (time.perf_counter() - start) * 10 > self.args.budget
            if count >= len(queries) or (slow and warm):
                return queries[:count], answers
            # A slow pass is repeated once, because caches may have been cold.
            warm = slow
            count *= 1 if slow else 10

    def singles(self, kind, name, distance):
        self.engine.threads(1)
        self.engine.prepare(distance)
        search = self.engine.search

        def one_by_one(queries):
            return [search(queries[i : i + 1], distance) for i in range(len(queries))]

        queries, answers = self.affordable(self.queries(name, MOST_SINGLE), one_by_one)
        answered = checks(*self.engine.found(answers), len(queries))
        del answers
        figures = {}
        for _ in range(self.args.repetitions):
            times = []
            start = time.perf_counter()
            for i in range(len(queries)):
                begun = time.perf_counter_ns()
                search(queries[i : i + 1], distance)
                times.append(time.perf_counter_ns() - begun)
            seconds = time.perf_counter() - start
            figures.setdefault("per_second", []).append(len(queries) / seconds)
            times.sort()
            for figure, permille, least in PERCENTILES:
                if len(times) >= least:
                    at = min(len(times) * permille // 1000, len(times) - 1)
                    figures.setdefault(figure, []).append(times[at] / 1e3)
        count = len(queries)
        self.show("search", k=distance, kind=kind, count=count, figures=figures, checks=answered)

    def batches(self, name, distance):
        self.engine.prepare(distance)
        for threads in (1, self.engine.cores):
            self.engine.threads(threads)
            batch = lambda queries: self.engine.batch(queries, distance)
            queries, answers = self.affordable(self.queries(name), batch)
            answered = checks(*self.engine.found([answers]), len(queries))
            del answers
            rates = []
            for _ in range(self.args.repetitions):
                start = time.perf_counter()
                batch(queries)
                rates.append(len(queries) / (time.perf_counter() - start))
            self.show("batch", k=distance, kind="near", count=len(queries), threads=threads,
                      figures={"per_second": rates}, checks=answered)

    def run(self, kind):
        self.build(kind)
        for distance in filter(self.engine.answers, self.args.distances):
            self.singles("near", f"near-{distance}", distance)
            if distance == MAIN_DISTANCE:
                self.singles("random", "random", distance)
        resident, peak = memory("VmRSS:") - self.before, memory("VmHWM:") - self.before
        figures = {"resident_bytes": [resident], "peak_bytes": [peak]}
        self.show("memory", figures=figures)
        # Batches run last, because their answers take more memory than a small index.
        if self.engine.batch and MAIN_DISTANCE in self.args.distances:
            self.batches(f"near-{MAIN_DISTANCE}", MAIN_DISTANCE)


def main():
    parser = argparse.ArgumentParser(description="one Python package at Hamming search")
    for option, kind in {"engine": str, "data": str, "count": int, "queries": str, "dir": str,
                         "repetitions": int, "budget": float}.items():
        parser.add_argument(f"--{option}", type=kind, required=True)
    parser.add_argument("--distances", type=lambda text: [int(k) for k in text.split(",")])
    args = parser.parse_args()
    module, kind = ENGINES[args.engine]
    try:
        if np is None:
            raise ImportError("numpy")
        __import__(module)
    except ImportError:
        row = {"engine": args.engine, "work": "absent", "n": args.count}
        print(json.dumps(row | {"note": f"the Python package {module} is not installed"}))
        return
    Bench(args).run(kind)


if __name__ == "__main__":
    sys.exit(main())
