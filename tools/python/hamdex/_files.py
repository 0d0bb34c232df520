"""Deduplication from file to file, as the command line does it."""

import json
import os

from . import _data, _hamdex
from ._errors import UsageError


def dedup_file(
    inputs,
    output,
    text=_data.TEXT,
    id="id",
    *,
    report=None,
    distance=None,
    verify=None,
    pipeline=None,
    keep="first",
    bits=None,
    verify_chain=False,
    against=None,
    format=None,
    rejects=None,
    max_bad=None,
    encoding=None,
    tmp=None,
):
    """Removes near-duplicates from files, in memory that does not grow with the texts.

    This is `hamdex dedup` itself, run within the process: the same rows, order and settings. The
    inputs are read twice; memory takes some dozens of bytes a document. Files get their names
    when all is done, so that nothing half-written is ever seen.

    inputs: a path, or several: .parquet, .jsonl, .csv, .tsv (text formats .gz or .zst too),
        .warc, directories of texts; whatever the command line reads.
    output: a file for the rows to keep, .parquet, .jsonl, .csv or .tsv; or a directory, which
        takes the duplicates, clusters, rejects and the report too. Rows of Parquet files with equal
        columns keep these, types and all; .csv and .tsv are made of such files alone.
    text, id: columns of texts and ids. A row without an id is called by file and line.
    report: a page to look at (.html): figures as charts, the largest groups side by side.
    distance, verify, pipeline, keep, verify_chain, tmp: as `dedup` takes them.
    bits: width of the fingerprints: 32, 64 or 128. Default: that of `against`, else 64.
    against: an `Index` or the path of one: what is near a document of it is removed too.
    format: form of the kept rows in a directory: "jsonl", "parquet", "csv" or "tsv".
    rejects: a file for the bad rows, which are skipped, as JSON Lines with file, line and reason;
        it is written as they are met, whatever becomes of the call.
    max_bad: stop when more rows than so many are bad.
    encoding: of texts that are not UTF-8, such as "gb18030". Default: told from the bytes.

    Returns a dict, that of the command line's report.json: counts, settings, advice, and the
    largest groups.

    The GIL is free meanwhile; Ctrl-C ends the call within a moment, and the output is as before.

    >>> import hamdex, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     posts, clean = pathlib.Path(directory, "posts.csv"), pathlib.Path(directory, "clean.csv")
    ...     _ = posts.write_text("text\\nIt will rain tomorrow\\nit will rain tomorrow!\\nOr not\\n")
    ...     report = hamdex.dedup_file(posts, clean)
    ...     report["documents"], report["kept"], clean.read_text().splitlines()
    (3, 2, ['text', 'It will rain tomorrow', 'Or not'])
    """
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    elif hasattr(inputs, "__arrow_c_stream__"):
        raise UsageError(f"{type(inputs).__name__} is no file: hamdex.dedup takes tables")
    if isinstance(pipeline, _hamdex.Pipeline):
        pipeline = pipeline.descriptor
    if isinstance(against, _hamdex.Index):
        against = against.path
    options = {
        "output": output,
        "text-field": text,
        "id-field": id,
        "report": report,
        "distance": distance,
        "verify": verify,
        "pipeline": pipeline,
        "keep": keep,
        "bits": bits,
        "against": against,
        "format": format,
        "rejects": rejects,
        "max-bad": max_bad,
        "encoding": encoding,
        "tmp": tmp,
    }
    arguments = [f"--{name}={_word(value)}" for name, value in options.items() if value is not None]
    if verify_chain:
        arguments.append("--verify-chain")
    paths = map(_word, inputs)
    # A lone dash would be standard input.
    paths = [os.path.join(os.curdir, path) if path == "-" else path for path in paths]
    return json.loads(_hamdex.dedup_file([*arguments, "--", *paths]))


def _word(value):
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)
