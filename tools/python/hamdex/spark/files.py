"""Deduplication from Parquet files to Parquet files, with an optional HTML report."""

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
    """Removes near-duplicates from Parquet files and keeps one row of each group.

    Keeps the rows that `dedup` keeps, rows with nothing to compare included. They equal those of
    `hamdex.dedup_file` and `hamdex dedup` with the same settings if ids ascend in file order. Use
    `dedup` for frames from other sources.

    inputs: one or several paths of Parquet files, as Spark accepts them.
    output: a directory for the Parquet files of the kept rows; it must not exist.
    text, id: columns of texts and ids.
    report: an HTML report to write on the driver (.html): charts, and the largest groups side by
        side. The tasks count everything; the driver collects the texts of ten groups.
    distance, verify, keep, unique_by, source_field, drop_empty, pipeline, bits, limit: as for
        `dedup`.

    Returns counts, settings, the largest groups, sources and warnings as a dict, like report.json
    of `hamdex dedup`. Sources are values of `source_field`; files are not counted separately.

        hamdex.spark.dedup_file(
            spark, "hdfs:///crawl", "hdfs:///clean", "content", "url",
            distance=3, pipeline="page", report="report.html",
        )
    """
    started = time.monotonic()
    if report is not None and not os.fspath(report).lower().endswith((".html", ".htm")):
        raise UsageError(f"{os.fspath(report)}: the name of a report must end in .html")
    paths = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    names = [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("inputs is empty; name at least one path of Parquet files")
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
    summary = totals(result, text)
    if report is not None:
        counted = figures(result, text, bits, summary)
        seconds = time.monotonic() - started
        page = {**summary, **settings, **counted, "seconds": seconds}
        for name in ("rows", "removed", "largest", "warnings"):
            del page[name]
        _hamdex._dedup_page(json.dumps(page, default=str), os.fspath(report))
    summary["seconds"] = time.monotonic() - started
    summary["settings"] = settings
    return summary
