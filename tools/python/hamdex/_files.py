"""Deduplication from file to file, with the code of the command line."""

import json
import os
import warnings

from . import _hamdex
from ._errors import DataWarning, UsageError


def dedup_file(
    inputs,
    output,
    text=None,
    id=None,
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
    sample=None,
    to=None,
    unit=None,
    boilerplate=None,
    min_left=None,
    simplified=False,
    stop_words=None,
    dictionary=None,
    weights=None,
    idf=None,
    seed_file=None,
):
    """Removes near-duplicates from files, in memory that does not grow with the texts.

    Runs `hamdex dedup` within this process: same rows, order and settings. Reads the inputs twice;
    memory is a few dozen bytes per document. Files get their names at the end, so no partial result
    is ever visible.

    inputs: one or several paths: .parquet, .jsonl, .csv, .tsv (text formats also .gz or .zst),
        .warc, directories of these or of texts; everything that the command line reads.
    output: a file for the kept rows, .parquet, .jsonl, .csv or .tsv; or a directory, which also
        gets the duplicates, clusters, rejects and the report. Parquet inputs with equal columns
        keep columns and types in Parquet output; .csv and .tsv output needs CSV or TSV inputs with
        equal columns.
    text: field of the texts, as for `dedup`.
    id: field of the labels; default: "id", also in capitals. A row without a label is labelled by
        file and row.
    report: an HTML report to write (.html): charts, and the largest groups side by side.
    distance, verify, pipeline, keep, unique_by, drop_empty, verify_chain, tmp: as for `dedup`.
    source_field: field whose values are the `sources` of the report. Default: the files.
    bits: width of the fingerprints: 32, 64 or 128. Default: that of `against`, else 64.
    against: an `Index` or the path of one: documents near a stored one are removed too.
    format: format of the kept rows in a directory: "jsonl", "parquet", "csv" or "tsv".
    rejects: a file for the skipped bad rows, as JSON Lines with file, line and reason. Each row is
        written when it is found, so the file is complete if the call fails.
    max_bad: fail if more rows are bad: a number, or a share such as "5%".
    encoding: encoding of texts that are not UTF-8, such as "gb18030". Default: detected.
    overwrite: replace existing results.
    input_format: format of inputs whose names do not show it, such as "jsonl".
    as_documents: treat each file as one document.
    shards: write one output file per input file.
    sample: do the whole work on this number of rows, drawn from all inputs; the report's `sample`
        has what all rows need.
    to: rows to leave, or a share of them such as 0.8: only the closest duplicates are removed. If
        the settings leave more rows, all results are written, and `DataError` is raised.
    unit: "line" or "paragraph": cut those that more than `boilerplate` of the kept documents (10)
        have, exactly or nearly. Documents of which less than `min_left` of the letters (0.1) is
        left are removed.
    simplified, stop_words, dictionary, weights, idf, seed_file: as for `Pipeline`; idf="learn"
        learns the inverse document frequency from the inputs.

    Returns report.json of the command line as a dict: counts, settings, advice, sources and the
    largest groups. Warnings of the command line are raised as `DataWarning`.

    Releases the GIL. Ctrl-C stops the call within a moment and leaves the output unchanged.

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
        raise UsageError(f"{type(inputs).__name__} is not a file; use hamdex.dedup for tables")
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
        "sample": sample,
        "to": to,
        "unit": unit,
        "boilerplate": boilerplate,
        "min-left": min_left,
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
    # A single dash would mean standard input.
    paths = [os.path.join(os.curdir, path) if path == "-" else path for path in paths]
    result, found = _hamdex.dedup_file([*arguments, "--", *paths])
    for warning in found:
        warnings.warn(warning, DataWarning, stacklevel=2)
    return json.loads(result)


def _word(value):
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)
