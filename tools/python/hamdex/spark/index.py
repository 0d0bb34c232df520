"""Indexes: tasks write the sorted files of an index, which one machine takes over."""

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
    """What was written."""

    #: The directory, for `hamdex build INDEX --from-shards PATH`.
    path: str
    #: Documents in it.
    documents: int
    #: Distinct fingerprints among them.
    fingerprints: int
    #: Files that the manifest names.
    files: int
    #: Bytes of those files.
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
    """Writes the files of an index in parallel, to be taken over by one machine.

        hamdex.spark.build_index(pages, "/shared/shards", "text", "url", pipeline="page")

        hamdex build pages.idx --from-shards /shared/shards

    The second step reads every file once to compare checksums and sorts nothing. The index answers
    as one does that `hamdex build` makes of the same documents.

    df: a frame of documents. Ids are strings or whole numbers; one that comes twice fails the job.
    path: a directory that is not there yet or is empty, which every worker and the driver reach
        under this name. The manifest is written last; files that it does not name, of tasks that
        failed, are passed over.
    distance: what the index is best for, and the default of its searches; any other can be asked.
    plan: its tables, as `hamdex build --plan` takes them.
    partitions: how many tasks write; each makes a file or two. Default = a file for 256 MB, about.
    pipeline, bits, fingerprint_column: as in `clusters`. A pipeline with tables of your own, such
        as a dictionary, is refused.
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
        # A name of its own for every attempt: what a failed one wrote is named by nobody.
        writer = _hamdex._Layout(*settings).writer(path, f"part-{uuid.uuid4().hex}")
        for batch in batches:
            writer.push(_hamdex.Table(batch))
        yield from _batches.to_batches(writer.finish())

    return ranges.mapInArrow(task, _FILES)
