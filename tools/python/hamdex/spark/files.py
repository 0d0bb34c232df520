"""Deduplication from files to files, and a page about it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from .. import _hamdex
from .._errors import UsageError
from . import _checks, _fields
from .dedup import dedup, verification
from .fingerprints import pipeline_of
from .links import LINKS_LIMIT
from .summary import figures, totals

Path = str | os.PathLike[str]


def dedup_file(
    spark: SparkSession,
    inputs: Path | Iterable[Path],
    output: Path,
    text: str = "text",
    id: str = "id",
    *,
    distance: int,
    report: Path | None = None,
    verify: str | None = None,
    keep: str = "first",
    unique_by: str | None = None,
    source_field: str | None = None,
    drop_empty: bool = False,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
    limit: int = LINKS_LIMIT,
) -> dict[str, Any]:
    """Removes near-duplicates from Parquet files, keeping one row of every group.

    The rows are those that `dedup` keeps, rows with nothing to compare among them, and those of
    `hamdex.dedup_file` and of `hamdex dedup` with the same settings where ids rise along the files.
    Frames of other sources go through `dedup`.

    inputs: a path of Parquet files, or several, as Spark knows them.
    output: a directory to be, for the Parquet files of the rows to keep; one that is there is refused.
    text, id: columns of texts and ids.
    report: a page to look at (.html), written where this is called: figures as charts, the largest
        groups side by side. Everything is counted by the tasks; the texts of ten groups are fetched.
    distance, verify, keep, unique_by, source_field, drop_empty, pipeline, bits, limit: as `dedup`
        takes them.

    Returns a dict of counts, settings, the largest groups, sources and warnings, as report.json of
    `hamdex dedup` has. Sources are values of `source_field`; files of a frame are not counted apart.

        hamdex.spark.dedup_file(
            spark, "hdfs:///crawl", "hdfs:///clean", "content", "url",
            distance=3, pipeline="page", report="report.html",
        )
    """
    started = time.monotonic()
    if report is not None and not os.fspath(report).lower().endswith((".html", ".htm")):
        raise UsageError(f"{os.fspath(report)}: a report is a page, with a name that ends in .html")
    paths = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    names = [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("name a path of Parquet files at least")
    _checks.require_absent(spark, os.fspath(output))
    rows = spark.read.parquet(*names)
    _fields.text(rows, text)
    _checks.require_columns(rows, id)
    verify = verification(verify, text, pipeline, bits)
    result = dedup(
        rows, text, id, distance, verify=verify, keep=keep, unique_by=unique_by,
        source_field=source_field, drop_empty=drop_empty, pipeline=pipeline, bits=bits, limit=limit,
    )  # fmt: skip
    result.kept.write.parquet(os.fspath(output))
    settings = {
        "inputs": names,
        "bits": bits,
        "distance": distance,
        "verification": verify,
        "verified_with_kept": verify != "none",
        "pipeline": pipeline_of(pipeline).descriptor,
        "keep": keep,
    }
    told = totals(result, text)
    if report is not None:
        counted = figures(result, text, bits, told)
        seconds = time.monotonic() - started
        page = {**told, **settings, **counted, "seconds": seconds}
        for name in ("rows", "removed", "largest", "warnings"):
            del page[name]
        _hamdex._dedup_page(json.dumps(page, default=str), os.fspath(report))
    told["seconds"] = time.monotonic() - started
    told["settings"] = settings
    return told
