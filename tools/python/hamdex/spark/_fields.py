"""Fields: resolve the name of one or several columns into a column of texts or values.

A name is a column or a path into structs, `a.b`. Several comma-separated names are joined by line
ends, as are the texts of an array, and those of an array of structs with a field `text`. A column
with exactly the given name takes precedence. `hamdex.dedup` follows the same rules.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructType

from .._errors import UsageError


def text(frame: DataFrame, field: str) -> Column:
    """Returns the text of each row; null if all of its fields are null."""
    names = [field] if field in frame.columns else field.split(",")
    parts = [_text(frame, name.strip()) for name in names]
    if len(parts) == 1:
        return parts[0]
    return F.when(F.coalesce(*parts).isNotNull(), F.concat_ws("\n", *parts))


def value(frame: DataFrame, field: str) -> Column:
    """Returns the value of one field."""
    return _found(frame, field, arrays=False)[0]


def _text(frame: DataFrame, field: str) -> Column:
    column, kind = _found(frame, field, arrays=True)
    if not isinstance(kind, ArrayType):
        return column
    column, kind = _flat(column, kind)
    part = kind.elementType
    if isinstance(part, StructType) and "text" in part.names:
        # A message may be an array of parts, of which pictures have no text.
        column, kind = column.getField("text"), ArrayType(part["text"].dataType)
    if not isinstance(kind.elementType, StringType):
        shown = kind.elementType.simpleString()
        raise UsageError(f'column "{field}" holds values of type {shown}; supported are texts')
    # Without texts it is null, and not empty.
    found = F.exists(column, lambda text: text.isNotNull())
    return F.when(found, F.array_join(column, "\n"))


def _found(frame: DataFrame, field: str, arrays: bool) -> tuple[Column, DataType]:
    ends = [len(field), *(at for at in reversed(range(len(field))) if field[at] == ".")]
    for end in ends:
        name, rest = field[:end], field[end + 1 :]
        if name in frame.columns:
            kind = frame.schema[name].dataType
            return _within(F.col(_quoted(name)), kind, rest, field, arrays)
    raise UsageError(f'there is no column "{field}" among {", ".join(frame.columns)}')


def _within(
    column: Column, kind: DataType, path: str, field: str, arrays: bool
) -> tuple[Column, DataType]:
    for name in filter(None, path.split(".")):
        if arrays and isinstance(kind, ArrayType):
            column, kind = _flat(column, kind)
        inner = kind.elementType if arrays and isinstance(kind, ArrayType) else kind
        if not isinstance(inner, StructType) or name not in inner.names:
            shown = kind.simpleString()
            raise UsageError(f'there is no column "{field}": no field "{name}" in {shown}')
        below = inner[name].dataType
        column, kind = column.getField(name), below if inner is kind else ArrayType(below)
    return column, kind


def _flat(column: Column, kind: ArrayType) -> tuple[Column, ArrayType]:
    """Makes arrays of arrays one array."""
    while isinstance(kind.elementType, ArrayType):
        # A null among them would make the whole one null.
        column = F.flatten(F.filter(column, lambda inner: inner.isNotNull()))
        kind = kind.elementType
    return column, kind


def _quoted(name: str) -> str:
    """Quotes a name with any characters as an expression."""
    return "`" + name.replace("`", "``") + "`"
