"""Fingerprints of a column of texts."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import _hamdex
from .._errors import UsageError
from . import _batches, _checks, _fields


def fingerprints(
    df: DataFrame,
    text_column: str,
    id_column: str,
    *,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
) -> DataFrame:
    """Returns "id" and "fingerprint" for each document.

    Rows with a null id or text and texts without features are omitted. Ids may repeat.

    A fingerprint of 32 or 64 bits is a bigint with the same bits, so a 64-bit one is negative if
    its first bit is set. A 128-bit fingerprint is binary, the most significant byte first.
    `bit_count(a ^ b)` is the distance of two bigints.

    df: a frame with the two columns.
    text_column: texts; a path such as "meta.body" selects a field of a struct, "title,body" joins
        columns by a line end. The texts of an array are joined too: "messages.content".
    pipeline: "auto", "post", "page", "code", a descriptor or a `hamdex.Pipeline`, which may have
        custom tables and a secret; these are sent to the workers with the tasks. Nothing is chosen
        from a sample of the texts. To use the settings that one machine would choose, run `hamdex
        dedup` on a sample and pass the pipeline that it reports.
    bits: width of the fingerprints: 32, 64 or 128.
    """
    _checks.require_columns(df, id_column)
    _checks.context(df.sparkSession)
    documents = df.select(
        F.col(f"`{id_column}`").alias("id"), _fields.text(df, text_column).alias("text")
    ).filter("id is not null")
    return of_texts(documents, pipeline, bits)


def of_texts(
    documents: DataFrame, pipeline: str | _hamdex.Pipeline, bits: int
) -> DataFrame:
    """Replaces the column "text" by "fingerprint"; omits rows without a fingerprint."""
    _checks.require_distance(0, bits)
    made = pipeline_of(pipeline)
    kind = _batches.fingerprint_type(bits)
    prints = _batches.with_column(
        documents.filter("text is not null"),
        "fingerprint",
        kind,
        lambda: _batches.fingerprints("text", made, bits),
        drop="text",
    )
    return prints.filter("fingerprint is not null")


def documents(
    df: DataFrame,
    text_column: str | None,
    id_column: str,
    fingerprint_column: str | None,
    pipeline: str | _hamdex.Pipeline,
    bits: int,
    *,
    row_column: str | None = None,
) -> DataFrame:
    """Returns the documents of a frame, by texts or existing fingerprints, checkpointed.

    The columns are "id" and "fingerprint". If `row_column` is given there is also "row", and rows
    without an id are included.
    """
    _checks.require_checkpoints(df)
    columns = [F.col(f"`{id_column}`").alias("id")]
    if row_column is not None:
        columns.append(F.col(row_column).alias("row"))
    if text_column is not None and fingerprint_column is None:
        _checks.require_columns(df, id_column)
        made = df.select(*columns, _fields.text(df, text_column).alias("text"))
        made = of_texts(made, pipeline, bits)
    elif fingerprint_column is not None and text_column is None:
        _checks.require_columns(df, id_column)
        _checks.require_fingerprints(df, fingerprint_column, bits)
        given = F.col(f"`{fingerprint_column}`").cast(_batches.fingerprint_type(bits))
        made = df.select(*columns, given.alias("fingerprint")).filter("fingerprint is not null")
    else:
        raise UsageError("pass a text_column or a fingerprint_column, and not both")
    if row_column is None:
        made = made.filter("id is not null")
    return _checks.checkpointed(made)


def pipeline_of(pipeline: str | _hamdex.Pipeline) -> _hamdex.Pipeline:
    """Returns the pipeline, which every worker receives."""
    return pipeline if isinstance(pipeline, _hamdex.Pipeline) else _hamdex.Pipeline(pipeline)
