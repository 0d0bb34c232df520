"""Fingerprints of a column of texts."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import _hamdex
from .._errors import UsageError
from . import _batches, _checks


def fingerprints(
    df: DataFrame,
    text_column: str,
    id_column: str,
    *,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
) -> DataFrame:
    """Returns a frame of two columns, "id" and "fingerprint", with a row for every document.

    Rows whose id or text is null, and texts in which nothing is a feature, are no documents and
    are left out, as on one machine. Ids have to be unique, which is not checked.

    A fingerprint of 32 or 64 bits is a bigint with the same bits, so one of 64 bits with the first
    bit set is negative; one of 128 bits is binary, the most significant byte first. `bit_count(a ^
    b)` is the distance of two bigints.

    df: a frame with the two columns.
    pipeline: "auto", "post", "page", "code", a descriptor or a `hamdex.Pipeline`. Nothing is
        chosen by a look at the texts: to get what one machine would choose, run `hamdex dedup`
        over a sample and take the pipeline that it names.
    bits: width of the fingerprints: 32, 64 or 128.
    """
    _checks.require_columns(df, text_column, id_column)
    descriptor = _descriptor(pipeline)
    _checks.require_distance(0, bits)
    documents = df.select(
        F.col(f"`{id_column}`").alias("id"), F.col(f"`{text_column}`").alias("text")
    ).filter("id is not null and text is not null")
    kind = _batches.fingerprint_type(bits)
    made = _batches.with_column(
        documents,
        "fingerprint",
        kind,
        lambda: _batches.fingerprints("text", descriptor, bits),
    )
    return made.select("id", "fingerprint").filter("fingerprint is not null")


def documents(
    df: DataFrame,
    text_column: str | None,
    id_column: str,
    fingerprint_column: str | None,
    pipeline: str | _hamdex.Pipeline,
    bits: int,
) -> DataFrame:
    """The documents of a frame, by their texts or by fingerprints that it has already, stored."""
    _checks.require_checkpoints(df)
    if text_column is not None and fingerprint_column is None:
        made = fingerprints(df, text_column, id_column, pipeline=pipeline, bits=bits)
    elif fingerprint_column is not None and text_column is None:
        _checks.require_columns(df, id_column)
        _checks.require_fingerprints(df, fingerprint_column, bits)
        given = F.col(f"`{fingerprint_column}`").cast(_batches.fingerprint_type(bits))
        made = df.select(F.col(f"`{id_column}`").alias("id"), given.alias("fingerprint"))
        made = made.filter("id is not null and fingerprint is not null")
    else:
        raise UsageError("name a text_column, or a fingerprint_column instead of it")
    return _checks.checkpointed(made)


def _descriptor(pipeline: str | _hamdex.Pipeline) -> str:
    """The pipeline in full, so that every worker makes the same one."""
    if not isinstance(pipeline, _hamdex.Pipeline):
        pipeline = _hamdex.Pipeline(pipeline)
    return pipeline.descriptor
