#!/usr/bin/env python3
"""Deduplicate a file with a Python package, from file to file; called by tools/bench/e2e.

Usage:
  dedup_peers.py TOOL CORPUS.jsonl OUT   write the kept rows to the directory OUT
  dedup_peers.py ids TOOL OUT            print the ids of the kept rows
  dedup_peers.py settings TOOL           print the settings of a package

Each function uses its package as the package's documentation shows for near-duplicates, with the
documented defaults; its documentation names them.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path


def rows_of(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line), line


def batches(path):
    """Yield the rows and lines of a file in lists."""
    rows = rows_of(path)
    while batch := list(itertools.islice(rows, 10_000)):
        yield batch


def keep_lines(corpus, out, is_new):
    """Write the lines of rows for which `is_new(id, text)` is true."""
    with open(out / "kept.jsonl", "w", encoding="utf-8") as kept:
        for row, line in rows_of(corpus):
            if is_new(row["id"], row["text"]):
                kept.write(line)


def datasketch(corpus, out):
    """MinHash of 128 permutations over the set of words, `MinHashLSH` at 0.9; a row is removed if a kept one is found"""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.9, num_perm=128)

    def is_new(id, text):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([word.encode() for word in set(text.split())])
        if index.query(sketch):
            return False
        index.insert(id, sketch)
        return True

    keep_lines(corpus, out, is_new)


def rensa(corpus, out):
    """`RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)` over words"""
    from rensa import RMinHashDeduplicator

    index = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    with open(out / "kept.jsonl", "w", encoding="utf-8") as kept:
        for batch in batches(corpus):
            pairs = ((str(row["id"]), row["text"].split()) for row, _ in batch)
            kept.writelines(line for (_, line), new in zip(batch, index.add_pairs(pairs)) if new)


def gaoya(corpus, out):
    """`MinHashStringIndex()`: words, 20 bands of 5, Jaccard 0.75; all rows inserted, then queried, on all cores"""
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex()
    for batch in batches(corpus):
        index.par_bulk_insert_docs([row["id"] for row, _ in batch], [row["text"] for row, _ in batch])
    ids = set()
    with open(out / "kept.jsonl", "w", encoding="utf-8") as kept:
        for batch in batches(corpus):
            found = index.par_bulk_query([row["text"] for row, _ in batch])
            for (row, line), near in zip(batch, found):
                if ids.isdisjoint(near):
                    ids.add(row["id"])
                    kept.write(line)


def text_dedup(corpus, out):
    """`python -m text_dedup.minhash`: 5-grams of words, 256 permutations, Jaccard 0.7, connected components"""
    command = [sys.executable, "-m", "text_dedup.minhash"]
    options = {
        "path": "json",
        "data_files": corpus,
        "split": "train",
        "cache_dir": out / "cache",
        "output": out / "kept",
        "column": "text",
        "batch_size": 10_000,
    }
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    subprocess.run(command, check=True)


def datatrove(corpus, out):
    """the four MinHash stages of its example: 5-grams of words, 14 buckets of 8 hashes, connected components; 2 tasks"""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    workers = 2
    config = MinhashConfig(num_buckets=14, hashes_per_bucket=8)
    shards = out / "input"
    shards.mkdir()
    # A task reads whole files, so there is one file for each.
    files = [open(shards / f"{n}.jsonl", "w", encoding="utf-8") for n in range(workers)]
    for row, line in rows_of(corpus):
        row["id"] = str(row["id"])
        files[int(row["id"]) % workers].write(json.dumps(row, ensure_ascii=False) + "\n")
    for file in files:
        file.close()

    def run(tasks, *pipeline):
        logs = str(out / "logs" / type(pipeline[-1]).__name__)
        count = min(tasks, workers)
        LocalPipelineExecutor(list(pipeline), tasks=tasks, workers=count, logging_dir=logs).run()

    def place(name):
        return str(out / name)

    run(
        workers,
        JsonlReader(str(shards)),
        MinhashDedupSignature(output_folder=place("signatures"), config=config),
    )
    run(
        config.num_buckets,
        MinhashDedupBuckets(
            input_folder=place("signatures"), output_folder=place("buckets"), config=config
        ),
    )
    run(
        1,
        MinhashDedupCluster(
            input_folder=place("buckets"), output_folder=place("remove_ids"), config=config
        ),
    )
    run(
        workers,
        JsonlReader(str(shards)),
        MinhashDedupFilter(input_folder=place("remove_ids")),
        JsonlWriter(output_folder=place("kept"), compression=None),
    )


TOOLS = {
    "rensa": rensa,
    "gaoya": gaoya,
    "datasketch": datasketch,
    "text-dedup": text_dedup,
    "datatrove": datatrove,
}


def ids_of(tool, out):
    """Yield the ids of the rows that a tool kept."""
    if tool == "text-dedup":
        from datasets import load_from_disk

        yield from load_from_disk(str(out / "kept"))["id"]
        return
    places = {"hamdex": "clean/kept.jsonl", "datatrove": "kept/*.jsonl"}
    for path in sorted(out.glob(places.get(tool.split()[0], "kept.jsonl"))):
        for row, _ in rows_of(path):
            yield row["id"]


def main(arguments):
    if arguments[:1] == ["ids"]:
        for id in ids_of(arguments[1], Path(arguments[2])):
            print(id)
    elif arguments[:1] == ["settings"]:
        tool = arguments[1]
        if tool in TOOLS:
            print(f"- {tool}: {TOOLS[tool].__doc__}.")
    elif len(arguments) == 3 and arguments[0] in TOOLS:
        TOOLS[arguments[0]](Path(arguments[1]), Path(arguments[2]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
