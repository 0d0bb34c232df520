"""Indexes: tasks write the sorted files of an index, and one machine ingests them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from .. import _hamdex
from .._errors import UsageError
from . import _batches, _checks
from .fingerprints import documents, pipeline_of

_FILES = StructType(
    [
        StructField("family", IntegerType()),
        StructField("file", StringType()),
        StructField("members", LongType()),
        StructField("bytes", LongType()),
        StructField("checksum", LongType()),
        StructField("first", BinaryType()),
        StructField("last", BinaryType()),
    ]
)


@dataclass(frozen=True)
class Shards:
    """Counts of the written files."""

    #: The directory, for `hamdex build INDEX --from-shards PATH`.
    path: str
    #: Number of documents.
    documents: int
    #: Number of distinct fingerprints.
    fingerprints: int
    #: Number of files in the manifest.
    files: int
    #: Size of those files in bytes.
    bytes: int


def build_index(
    df: DataFrame,
    path: str | os.PathLike[str],
    text_column: str | None,
    id_column: str,
    distance: int = 3,
    *,
    plan: str = "auto",
    partitions: int | None = None,
    fingerprint_column: str | None = None,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
) -> Shards:
    """Writes the files of an index in parallel, to be ingested by one machine.

        hamdex.spark.build_index(pages, "/shared/shards", "text", "url", pipeline="page")

        hamdex build pages.idx --from-shards /shared/shards

    The second step reads every file once to compare checksums and sorts nothing. The index returns
    the same answers as one that `hamdex build` creates from the same documents.

    df: a frame of documents. Ids are strings or integers; a repeated id fails the job.
    path: a directory that does not exist or is empty; every worker and the driver must reach it
        under this name. The manifest is written last; files of failed tasks are not in it and are
        ignored.
    distance: the distance that the index is optimised for, and the default of its searches; any
        other distance can be searched too.
    plan: the tables, as for `hamdex build --plan`.
    partitions: number of tasks that write; each writes one or two files. Default: one file per 256
        MB, approximately.
    pipeline, bits, fingerprint_column: as for `clusters`. A pipeline with custom tables, such as a
        dictionary, is rejected.
    """
    path = os.path.abspath(os.fspath(path))
    if os.path.isdir(path) and os.listdir(path):
        raise UsageError(f"{path} is not empty")
    descriptor = "" if text_column is None else pipeline_of(pipeline).descriptor
    _hamdex._Layout(bits, plan, distance, 1, descriptor)
    made = documents(df, text_column, id_column, fingerprint_column, pipeline, bits)
    count = made.count()
    layout = _hamdex._Layout(bits, plan, distance, max(count, 1), descriptor)
    settings = (bits, layout.plan, distance, count, descriptor)
    os.makedirs(path, exist_ok=True)
    rows = _rows(made, settings)
    partitions = partitions or max(1, count * 120 // (256 << 20))
    ranges = rows.repartitionByRange(partitions, "family", "key")
    ranges = ranges.sortWithinPartitions("family", "key")
    written = _written(ranges, path, settings).toArrow()
    stored, distinct = layout.write_manifest(path, _hamdex.Table(written))
    size = sum(written.column("bytes").to_pylist())
    return Shards(path, stored, distinct, written.num_rows, size)


def _rows(made: DataFrame, settings: tuple) -> DataFrame:
    schema = StructType(
        [
            StructField("family", IntegerType()),
            StructField("key", BinaryType()),
            StructField("fingerprint", _batches.fingerprint_type(settings[0])),
        ]
    )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        layout = _hamdex._Layout(*settings)
        for batch in batches:
            yield from _batches.to_batches(layout.rows(_hamdex.Table(batch)))

    return made.mapInArrow(task, schema)


def _written(ranges: DataFrame, path: str, settings: tuple) -> DataFrame:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A unique name per attempt: the manifest does not list the files of a failed one.
        writer = _hamdex._Layout(*settings).writer(path, f"part-{uuid.uuid4().hex}")
        for batch in batches:
            writer.push(_hamdex.Table(batch))
        yield from _batches.to_batches(writer.finish())

    return ranges.mapInArrow(task, _FILES)
