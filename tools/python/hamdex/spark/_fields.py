"""Fields: resolve the name of one or several columns into a column of texts or values.

A name is a column or a path into structs, `a.b`. Several comma-separated names are joined by line
ends. A column with exactly the given name takes precedence. `hamdex.dedup` follows the same rules.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from .._errors import UsageError


def text(frame: DataFrame, field: str) -> Column:
    """Returns the text of each row; null if all of its fields are null."""
    names = [field] if field in frame.columns else field.split(",")
    parts = [value(frame, name.strip()) for name in names]
    if len(parts) == 1:
        return parts[0]
    return F.when(F.coalesce(*parts).isNotNull(), F.concat_ws("\n", *parts))


def value(frame: DataFrame, field: str) -> Column:
    """Returns the value of one field."""
    ends = [len(field), *(at for at in reversed(range(len(field))) if field[at] == ".")]
    for end in ends:
        name, rest = field[:end], field[end + 1 :]
        if name in frame.columns:
            return _within(F.col(_quoted(name)), frame.schema[name].dataType, rest, field)
    raise UsageError(f'there is no column "{field}" among {", ".join(frame.columns)}')


def _within(column: Column, kind: DataType, path: str, field: str) -> Column:
    for name in filter(None, path.split(".")):
        if not isinstance(kind, StructType) or name not in kind.names:
            shown = kind.simpleString()
            raise UsageError(f'there is no column "{field}": no field "{name}" in {shown}')
        column, kind = column.getField(name), kind[name].dataType
    return column


def _quoted(name: str) -> str:
    """Quotes a name with any characters as an expression."""
    return "`" + name.replace("`", "``") + "`"
