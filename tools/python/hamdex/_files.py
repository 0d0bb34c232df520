"""Deduplication from file to file, as the command line does it."""

import json
import os
import warnings

from . import _hamdex
from ._errors import DataWarning, UsageError


def dedup_file(
    inputs,
    output,
    text=None,
    id="id",
    *,
    report=None,
    distance=None,
    verify=None,
    pipeline=None,
    keep="first",
    unique_by=None,
    source_field=None,
    drop_empty=False,
    bits=None,
    verify_chain=False,
    against=None,
    format=None,
    rejects=None,
    max_bad=None,
    encoding=None,
    tmp=None,
    overwrite=False,
    input_format=None,
    as_documents=False,
    shards=False,
    simplified=False,
    stop_words=None,
    dictionary=None,
    weights=None,
    idf=None,
    seed_file=None,
):
    """Removes near-duplicates from files, in memory that does not grow with the texts.

    This is `hamdex dedup` itself, run within the process: the same rows, order and settings. The
    inputs are read twice; memory takes some dozens of bytes a document. Files get their names
    when all is done, so that nothing half-written is ever seen.

    inputs: a path, or several: .parquet, .jsonl, .csv, .tsv (text formats .gz or .zst too),
        .warc, directories of these or of texts; all that the command line reads.
    output: a file for the rows to keep, .parquet, .jsonl, .csv or .tsv; or a directory, which
        takes the duplicates, clusters, rejects and the report too. Rows of Parquet files with equal
        columns keep these, types and all; .csv and .tsv are made of such files alone.
    text: field of the texts, as `dedup` takes it.
    id: field of the labels. A row without one is labelled by file and row.
    report: a page to look at (.html): figures as charts, the largest groups side by side.
    distance, verify, pipeline, keep, unique_by, drop_empty, verify_chain, tmp: as `dedup` takes
        them.
    source_field: field by whose values, instead of by file, the report's `sources` counts rows.
    bits: width of the fingerprints: 32, 64 or 128. Default: that of `against`, else 64.
    against: an `Index` or the path of one: what is near a document of it is removed too.
    format: form of the kept rows in a directory: "jsonl", "parquet", "csv" or "tsv".
    rejects: a file for the bad rows, which are skipped, as JSON Lines with file, line and reason;
        it is written as they are found, also if the call fails.
    max_bad: fail if more rows are bad, a number or a share such as "5%".
    encoding: of texts that are not UTF-8, such as "gb18030". Default: detected from the bytes.
    overwrite: replace existing results.
    input_format: format of inputs whose names do not say it, such as "jsonl".
    as_documents: every file is one document.
    shards: write one output file for each input file.
    simplified, stop_words, dictionary, weights, idf, seed_file: as `Pipeline` takes them, and
        idf="learn" to learn the rarity of words from the inputs.

    Returns a dict, that of the command line's report.json: counts, settings, advice,
    sources and the largest groups. What the command line would warn of is a `DataWarning`.

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
        "unique-by": unique_by,
        "source-field": source_field,
        "bits": bits,
        "against": against,
        "format": format,
        "rejects": rejects,
        "max-bad": max_bad,
        "encoding": encoding,
        "tmp": tmp,
        "input-format": input_format,
        "stop-words": stop_words,
        "dictionary": dictionary,
        "weights": weights,
        "idf": idf,
        "seed-file": seed_file,
    }
    switches = {
        "drop-empty": drop_empty,
        "verify-chain": verify_chain,
        "overwrite": overwrite,
        "as-documents": as_documents,
        "shards": shards,
        "simplified": simplified,
    }
    arguments = [f"--{name}={_word(value)}" for name, value in options.items() if value is not None]
    arguments += [f"--{name}" for name, given in switches.items() if given]
    paths = map(_word, inputs)
    # A lone dash would be standard input.
    paths = [os.path.join(os.curdir, path) if path == "-" else path for path in paths]
    result, found = _hamdex.dedup_file([*arguments, "--", *paths])
    for warning in found:
        warnings.warn(warning, DataWarning, stacklevel=2)
    return json.loads(result)


def _word(value):
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)
