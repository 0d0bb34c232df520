"""Data of several libraries: converted to Arrow and back to the type that the caller passed.

Imports only libraries that the caller has already imported: an object of a library exists only if
that library is loaded.
"""

import array
import itertools
import os
import sys
import zlib

from ._errors import DataError, UsageError
from ._hamdex import Table, _columns_of, _id_field, _text_field

TEXT = "text"


def _class(module, name):
    """Returns a class of a loaded module, else an empty tuple, which matches no object."""
    loaded = sys.modules.get(module)
    return getattr(loaded, name, ()) if loaded is not None else ()


def _need(module, what):
    try:
        return __import__(module)
    except ImportError:
        raise UsageError(f"{what} needs {module}: pip install {module}") from None


class Form:
    """A kind of data: reads its columns, selects rows, and creates more data of its kind."""

    def __init__(self, data):
        self.data = data
        #: Numbers of the rows whose text is not a string.
        self.odd = []

    def names(self):
        raise NotImplementedError

    def columns(self, names):
        """Returns the columns as an Arrow table, without copies where possible."""
        raise NotImplementedError

    def chosen(self, mask):
        """Returns the rows for which a byte of the mask is 1, unchanged."""
        raise NotImplementedError

    def like(self, table):
        """Converts a table to this kind of data."""
        raise NotImplementedError

    def rows(self, names):
        """Returns the rows as tuples of Python values."""
        raise NotImplementedError


class _Pyarrow(Form):
    def names(self):
        return self.data.schema.names

    def columns(self, names):
        return Table(self.data.select(names))

    def chosen(self, mask):
        import pyarrow as pa

        chosen = pa.table(Table._of_mask(mask))["kept"].combine_chunks()
        try:
            return self.data.filter(chosen)
        except pa.ArrowNotImplementedError:
            # Some pyarrow versions cannot filter every type, such as views.
            kept = pa.table(Table(self.data).filter(mask))
        if isinstance(self.data, pa.Table):
            return kept
        return next(iter(kept.to_batches()), self.data.slice(0, 0))

    def like(self, table):
        import pyarrow as pa

        return pa.table(table)

    def rows(self, names):
        return zip(*(self.data.column(name).to_pylist() for name in names))


class _Polars(Form):
    def names(self):
        return self.data.columns

    def columns(self, names):
        return Table(self.data.select(names))

    def chosen(self, mask):
        import polars as pl

        return self.data.filter(pl.DataFrame(Table._of_mask(mask))["kept"])

    def like(self, table):
        import polars as pl

        return pl.DataFrame(table)

    def rows(self, names):
        return self.data.select(names).iter_rows()


class _Pandas(Form):
    def names(self):
        return list(self.data.columns)

    def columns(self, names):
        pa = _need("pyarrow", "a pandas DataFrame")
        return Table(pa.table({name: self._column(pa, name) for name in names}))

    def _column(self, pa, name):
        values = self.data[name]
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # Cells of several types: other values than strings become nulls and are listed in
            # `odd`.
            strings = values.map(lambda value: value if isinstance(value, str) else None)
            other = values.notna() & strings.isna()
            self.odd = [row for row, odd in enumerate(other) if odd]
            return pa.array(strings, type=pa.large_string(), from_pandas=True)

    def chosen(self, mask):
        import numpy as np

        return self.data[np.frombuffer(mask, dtype=np.uint8).astype(bool)]

    def like(self, table):
        import pyarrow as pa

        return pa.table(table).to_pandas()

    def rows(self, names):
        # As objects, so that numbers are Python's and not numpy's.
        return zip(*(self.data[name].astype(object).tolist() for name in names))


class _Datasets(Form):
    def names(self):
        return self.data.column_names

    def columns(self, names):
        # Copies rows that were selected or shuffled; otherwise this is the memory-mapped file.
        return Table(self.data.select_columns(names).with_format("arrow")[:])

    def chosen(self, mask):
        return self.data.select([row for row, keep in enumerate(mask) if keep])

    def like(self, table):
        import datasets
        import pyarrow as pa

        return datasets.Dataset(pa.table(table))

    def rows(self, names):
        return zip(*(list(self.data[name]) for name in names))


class _Stream(Form):
    """A streaming dataset, which is read once for texts and once for the kept rows."""

    def __init__(self, data):
        super().__init__(data)
        #: The columns that were compared, and a checksum of them for each row.
        self.read, self.sums = [], array.array("I")

    def names(self):
        return self.data.column_names or list(next(iter(self.data), {}))

    def columns(self, names):
        pa = _need("pyarrow", "a streaming dataset")
        self.read, self.sums = names, array.array("I")
        features = self.data.features
        schema = features.arrow_schema if features is not None else None
        fields = None if schema is None else pa.schema([schema.field(name) for name in names])
        batches = []
        for rows in self.data.select_columns(names).iter(STREAMED):
            self.sums.extend(map(_checksum, zip(*(rows[name] for name in names))))
            batches.append(pa.table({name: rows[name] for name in names}, schema=fields))
        if not batches:
            return Table(fields.empty_table() if fields else pa.table({n: [] for n in names}))
        return Table(pa.concat_tables(batches, promote_options="permissive"))

    def chosen(self, mask):
        import datasets

        stream, read, sums = self.data, self.read, self.sums

        # A generator, because a filter by row number would meet other rows once it is shuffled or
        # split among workers.
        def kept():
            row = -1
            for row, values in enumerate(stream):
                if row >= len(sums) or sums[row] != _checksum(values[name] for name in read):
                    raise DataError(f"row {row} of the stream is not the row that was compared")
                if mask[row]:
                    yield values
            if row + 1 < len(sums):
                raise DataError(f"the stream ends after {row + 1} of {len(sums)} rows")

        return datasets.IterableDataset.from_generator(kept, features=stream.features)

    def like(self, table):
        return _Datasets(self.data).like(table)

    def rows(self, names):
        return (tuple(row[name] for name in names) for row in self.data)


#: Rows of a stream that are converted to Arrow at once.
STREAMED = 1000


def _checksum(values):
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogatepass"))


class _Daft(Form):
    """A data frame of Daft, which is collected."""

    def __init__(self, data):
        super().__init__(data)
        self.table = _Pyarrow(data.to_arrow())

    def names(self):
        return self.table.names()

    def columns(self, names):
        return self.table.columns(names)

    def chosen(self, mask):
        return self.like(self.table.chosen(mask))

    def like(self, table):
        import daft
        import pyarrow as pa

        return daft.from_arrow(pa.table(table))

    def rows(self, names):
        return self.table.rows(names)


class _Ray(Form):
    """A dataset of Ray, whose rows stay in the object store; compared columns are collected."""

    def __init__(self, data):
        super().__init__(data.materialize())
        self.blocks, self.lengths = self.data.to_arrow_refs(), []

    def names(self):
        return self.data.schema().names

    def columns(self, names):
        import pyarrow as pa
        import ray

        cut = ray.remote(lambda block: block.select(names))
        tables = ray.get([cut.remote(block) for block in self.blocks])
        self.lengths = [len(table) for table in tables]
        return Table(pa.concat_tables(tables, promote_options="permissive"))

    def chosen(self, mask):
        import ray

        @ray.remote
        def kept(block, some):
            import numpy as np

            return block.filter(np.frombuffer(some, dtype=np.uint8).astype(bool))

        ends = list(itertools.accumulate(self.lengths, initial=0))
        pieces = [mask[begin:end] for begin, end in itertools.pairwise(ends)]
        return ray.data.from_arrow_refs([kept.remote(*both) for both in zip(self.blocks, pieces)])

    def like(self, table):
        import pyarrow as pa
        import ray

        return ray.data.from_arrow(pa.table(table))

    def rows(self, names):
        return (tuple(row[name] for name in names) for row in self.data.iter_rows())


class _Texts(Form):
    """A list of texts."""

    def names(self):
        return [TEXT]

    def columns(self, names):
        texts = [text if isinstance(text, str) else None for text in self.data]
        self.odd = [
            row
            for row, (text, value) in enumerate(zip(texts, self.data))
            if text is None and value is not None
        ]
        return Table._of_texts(texts)

    def chosen(self, mask):
        return [text for text, keep in zip(self.data, mask) if keep]

    def like(self, table):
        return table


class _Arrow(Form):
    """Any other object with `__arrow_c_stream__`, which may be readable only once."""

    def __init__(self, data):
        super().__init__(data if isinstance(data, Table) else Table(data))

    def names(self):
        return self.data.column_names

    def columns(self, names):
        return self.data

    def chosen(self, mask):
        return self.data.filter(mask)

    def like(self, table):
        return table

    def rows(self, names):
        return _Pyarrow(_need("pyarrow", "a table of pairs").table(self.data)).rows(names)


def form(data):
    """Returns the kind of some data."""
    if isinstance(data, _class("datasets", "Dataset")):
        return _Datasets(data)
    if isinstance(data, _class("datasets", "IterableDataset")):
        return _Stream(data)
    if isinstance(data, _class("daft", "DataFrame")):
        return _Daft(data)
    if isinstance(data, _class("ray.data", "Dataset")):
        return _Ray(data)
    if isinstance(data, _class("pandas", "DataFrame")):
        return _Pandas(data)
    if isinstance(data, _class("polars", "LazyFrame")):
        return _Polars(data.collect())
    if isinstance(data, _class("polars", "DataFrame")):
        return _Polars(data)
    if isinstance(data, (_class("pyarrow", "Table"), _class("pyarrow", "RecordBatch"))):
        return _Pyarrow(data)
    if isinstance(data, (list, tuple)):
        return _Texts(list(data))
    if isinstance(data, (str, os.PathLike)):
        raise UsageError(
            f"{os.fspath(data)!r} is a path; use hamdex.dedup_file for files, or read it into a "
            "table first, for example with pyarrow.parquet.read_table"
        )
    if hasattr(data, "__arrow_c_stream__"):
        return _Arrow(data)
    raise UsageError(
        f"{type(data).__name__} is not a table; pass a table of pyarrow, pandas, Polars, datasets, "
        "Daft or Ray, an object with __arrow_c_stream__, or a list of texts"
    )


def for_call(data, text, id, *others):
    """Returns what a call reads: form, Arrow table, text field, id column and rows without a text.

    text may be None, a column, a path into structs or several comma-separated ones; the others are
    columns or paths, or None.
    """
    data = data if isinstance(data, Form) else form(data)
    # A pandas data frame may have numbers as column names.
    names = [name for name in data.names() if isinstance(name, str)]
    if text is None:
        text = _text_field(names)
    if id is None:
        id = _id_field(names)
    if id is not None and id not in data.names():
        raise UsageError(f'there is no column "{id}" among {", ".join(map(str, data.names()))}')
    fields = [text, *(name for name in others if name is not None)]
    chosen = [column for field in fields for column in _columns_of(names, field)]
    chosen += [] if id is None else [id]
    table = data.columns(list(dict.fromkeys(chosen)))
    return data, table, text, id, data.odd


def tables(simplified, stop_words, dictionary, weights, idf, seed_file):
    """Returns the pipeline options of a call, as the library expects them."""
    return {
        "simplified": simplified,
        "stop_words": stop_words,
        "dictionary": dictionary,
        "weights": weights,
        "idf": idf,
        "seed_file": seed_file,
    }


def pairs(data, similarity):
    """Returns labelled pairs as tuples of two ids and a similarity or None."""
    if not isinstance(data, (list, tuple, set, frozenset)):
        data = form(data)
        names = list(data.names())
        if len(names) < 2 or (similarity is not None and similarity not in names):
            shown = ", ".join(map(str, names))
            missing = "two columns of ids" if similarity is None else f'column "{similarity}"'
            raise UsageError(f"pairs have no {missing} among {shown}")
        wanted = names[:2] + ([] if similarity is None else [similarity])
        data = data.rows(wanted)
    return [(*pair, None) if len(pair) == 2 else tuple(pair) for pair in data]


class _Series:
    """A column of a library, and how to create another one of its kind.

    table: returns the column as a table; like: converts a table to such a column; values: returns
    the column's numbers or None; numbers: creates such a column of numbers or None.
    """

    def __init__(self, table, like, values, numbers):
        self.table, self.like, self.values, self.numbers = table, like, values, numbers


def series(data, what="texts"):
    """Returns the kind of a column."""
    if isinstance(data, (_class("pyarrow", "Array"), _class("pyarrow", "ChunkedArray"))):
        import pyarrow as pa

        return _Series(
            lambda: Table(pa.table({TEXT: data})),
            lambda table: pa.table(table).column(0).combine_chunks(),
            data.to_pylist,
            lambda numbers: pa.array(numbers, pa.uint64()),
        )
    if isinstance(data, _class("polars", "Series")):
        import polars as pl

        return _Series(
            lambda: Table(pl.DataFrame({TEXT: data})),
            lambda table: pl.DataFrame(table).to_series().alias(data.name),
            data.to_list,
            lambda numbers: pl.Series(data.name, numbers, pl.UInt64),
        )
    if isinstance(data, _class("pandas", "Series")):
        pa = _need("pyarrow", "a pandas Series")
        import pandas as pd

        def like(table):
            values = pa.table(table).column(0).to_pandas(types_mapper=_integers(pd).get)
            return pd.Series(values.array, index=data.index, name=data.name)

        return _Series(
            lambda: Table(pa.table({TEXT: pa.array(data, from_pandas=True)})),
            like,
            lambda: pa.array(data, from_pandas=True).to_pylist(),
            lambda numbers: pd.Series(numbers, data.index, "UInt64", data.name),
        )
    raise UsageError(
        f"{type(data).__name__} is not a column of {what}; pass a list, a pyarrow array or a "
        "Series of pandas or Polars"
    )


def _integers(pd):
    """Returns pandas' nullable integer types; its other integers become floats."""
    import pyarrow as pa

    return {pa.uint32(): pd.UInt32Dtype(), pa.uint64(): pd.UInt64Dtype()}
