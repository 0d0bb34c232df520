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
    """Returns a frame of two columns, "id" and "fingerprint", with a row for every document.

    Rows whose id or text is null and texts without features are left out. Ids may repeat.

    A fingerprint of 32 or 64 bits is a bigint with the same bits, so one of 64 bits with the first
    bit set is negative; one of 128 bits is binary, the most significant byte first. `bit_count(a ^
    b)` is the distance of two bigints.

    df: a frame with the two columns.
    text_column: texts; a path such as "meta.body" leads into structs, "title,body" joins columns by
        a line end.
    pipeline: "auto", "post", "page", "code", a descriptor or a `hamdex.Pipeline`, which may have
        tables of its own and a secret: they are sent to the workers with the tasks. Nothing is
        chosen by a look at the texts: to get what one machine would choose, run `hamdex dedup`
        over a sample and take the pipeline that it names.
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
    """Replaces the column "text" by "fingerprint"; rows without one are left out."""
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
    """The documents of a frame, by their texts or by fingerprints that it has already, stored.

    The columns are "id" and "fingerprint". With a column of row numbers there is "row" as well, and
    rows without an id are documents too.
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
        raise UsageError("name a text_column, or a fingerprint_column instead of it")
    if row_column is None:
        made = made.filter("id is not null")
    return _checks.checkpointed(made)


def pipeline_of(pipeline: str | _hamdex.Pipeline) -> _hamdex.Pipeline:
    """The pipeline itself, which every worker gets."""
    return pipeline if isinstance(pipeline, _hamdex.Pipeline) else _hamdex.Pipeline(pipeline)
