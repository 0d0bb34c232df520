"""Expressions for Polars, in data frames and in lazy frames.

Importing this module registers the namespace `hamdex` of Polars expressions:

    import hamdex.polars
    import polars as pl

    pages = pl.scan_parquet("pages.parquet")
    pages.filter(pl.col("text").hamdex.is_kept(distance=12)).sink_parquet("kept.parquet")
    pages.with_columns(print=pl.col("text").hamdex.fingerprint(pipeline="page"))
"""

from __future__ import annotations

from typing import Any, Literal

try:
    import polars as pl
except ImportError:
    raise ImportError("hamdex.polars needs polars: pip install polars") from None

from . import UsageError, dedup, fingerprint

__all__ = ["Expressions"]

#: Types of the columns of fingerprints, by width.
TYPES = {32: pl.UInt32(), 64: pl.UInt64(), 128: pl.Binary()}


@pl.api.register_expr_namespace("hamdex")
class Expressions:
    """The namespace `hamdex` of an expression."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def fingerprint(self, *, bits: Literal[32, 64, 128] = 64, **options: Any) -> pl.Expr:
        """Returns the fingerprint of each text, null for a text without features.

        Fingerprints of 128 bits are 16 bytes each, big-endian. Options are those of
        `hamdex.fingerprint`. Works batch by batch, so a streaming query needs no whole column,
        unless idf="learn" learns from it.
        """
        if bits not in TYPES:
            raise UsageError(f"fingerprints have 32, 64 or 128 bits, not {bits}")

        def prints(texts: pl.Series) -> pl.Series:
            return fingerprint(texts, bits=bits, **options).cast(TYPES[bits])

        return self._expression.map_batches(
            prints, TYPES[bits], is_elementwise=options.get("idf") != "learn"
        )

    def distance(self, other: pl.Expr | str) -> pl.Expr:
        """Returns the number of bits in which two fingerprints of 32 or 64 bits differ.

        other: an expression, or the name of a column.
        """
        other = pl.col(other) if isinstance(other, str) else other
        return (self._expression ^ other).bitwise_count_ones()

    def is_kept(self, **options: Any) -> pl.Expr:
        """Returns true for each row that `hamdex.dedup` keeps.

        The expression is a column of texts, or a struct of a column "text" and of those that the
        options name, such as `pl.struct("text", "date").hamdex.is_kept(keep="newest:date")`. Reads
        the whole column before it returns the first row; with `.over("site")`, the column of each
        group. Options are those of `hamdex.dedup`.
        """

        def mask(values: pl.Series) -> pl.Series:
            nested = isinstance(values.dtype, pl.Struct)
            frame = values.struct.unnest() if nested else pl.DataFrame({"text": values})
            kept = dedup(frame, **options).mask
            return pl.Series(values.name, list(kept), pl.UInt8).cast(pl.Boolean)

        return self._expression.map_batches(mask, pl.Boolean())
