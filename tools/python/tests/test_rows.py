"""Rows of a table, with any ids and texts."""

import datetime

import hamdex
import pytest

pa = pytest.importorskip("pyarrow")

RAIN = "it will rain tomorrow so take a coat and an umbrella with you"
BOOK = "just finished reading a wonderful book about the deep sea"


def rows(table):
    return pa.table(table).to_pylist()


def test_ids_are_labels_that_may_repeat_or_be_null_or_of_any_type():
    texts = [RAIN, BOOK, RAIN, RAIN]
    for ids in [
        ["a", "a", "a", None],
        ["", "\u0001", "x" * 5000, ""],
        [1.5, None, 1.5, float("nan")],
        [datetime.date(2024, 1, 2)] * 4,
        [{"n": 1}, None, {"n": 2}, {"n": 1}],
    ]:
        ids = pa.array(ids)
        result = hamdex.dedup(pa.table({"id": ids, "text": texts}))
        assert list(result.mask) == [1, 1, 0, 0], ids.type
        found = [(row["row"], row["kept_row"]) for row in rows(result.duplicates)]
        assert found == [(2, 0), (3, 0)]
        labels = pa.table(result.duplicates)["id"].combine_chunks()
        assert labels.type == ids.type
        (group,) = rows(result.clusters)
        assert group["size"] == 3


def test_rows_with_nothing_to_compare_are_kept_and_counted():
    texts = [RAIN, None, " ", "...", RAIN, "👍", "", None]
    result = hamdex.dedup(texts)
    assert list(result.mask) == [1, 1, 1, 1, 0, 1, 1, 1]
    report = result.report
    assert report["not_compared"] == {"null text": 2, "empty text": 2, "no features": 2}
    counts = ("rows", "documents", "kept", "removed", "rejects")
    assert [report[name] for name in counts] == [8, 8, 7, 1, 0]
    assert rows(result.rejects) == []


def test_a_target_removes_the_closest_duplicates_only():
    texts = [RAIN, RAIN + " today", BOOK, RAIN, None]
    for to in (4, "4", 0.8, "80%"):
        result = hamdex.dedup(texts, to=to)
        assert list(result.mask) == [1, 1, 1, 0, 1], to
        assert result.report["settings"]["to"] == 4
    assert hamdex.dedup(texts).report["settings"]["to"] is None
    with pytest.warns(hamdex.DataWarning, match="3 rows are left, more than the 2"):
        assert list(hamdex.dedup(texts, to=2).mask) == [1, 0, 1, 0, 1]
    # Rows that are dropped are not among the rows of a share.
    assert list(hamdex.dedup(texts, to=0.75, drop_empty=True).mask) == [1, 1, 1, 0, 0]
    with pytest.raises(hamdex.UsageError, match="half"):
        hamdex.dedup(texts, to="half")


def test_a_dropped_row_takes_no_value_from_another_one():
    table = pa.table({"text": [None, RAIN, BOOK], "url": ["a", "a", "b"]})
    assert list(hamdex.dedup(table, unique_by="url").mask) == [1, 0, 1]
    result = hamdex.dedup(table, unique_by="url", drop_empty=True)
    assert list(result.mask) == [0, 1, 1]
    assert rows(result.rejects) == [{"row": 0, "reason": "null text"}]


def test_rows_with_nothing_to_compare_are_dropped_on_demand():
    result = hamdex.dedup([RAIN, None, " ", "...", RAIN], drop_empty=True)
    assert list(result.mask) == [1, 0, 0, 0, 0]
    assert rows(result.rejects) == [
        {"row": 1, "reason": "null text"},
        {"row": 2, "reason": "empty text"},
        {"row": 3, "reason": "no features"},
    ]
    report = result.report
    counts = ("rows", "documents", "kept", "removed", "rejects")
    assert [report[name] for name in counts] == [5, 2, 1, 1, 3]
    assert report["not_compared"] == {}


def test_cells_that_are_not_strings_are_kept():
    result = hamdex.dedup([RAIN, 7, None, b"bytes"])
    assert list(result.mask) == [1, 1, 1, 1]
    assert result.report["not_compared"] == {"not a string": 2, "null text": 1}
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": pd.Series([RAIN, 7, None, RAIN], dtype=object)})
    result = hamdex.dedup(frame)
    assert result.kept.index.tolist() == [0, 1, 2]
    assert result.report["not_compared"] == {"not a string": 1, "null text": 1}


def test_a_table_without_any_text_is_a_data_error(tmp_path):
    for texts in [[None, None], ["", " "], ["..."]]:
        with pytest.raises(hamdex.DataError, match="has a text to compare"):
            hamdex.dedup(texts)
        with pytest.raises(hamdex.DataError, match="has a text to compare"):
            hamdex.Index.build(tmp_path / "idx", texts)
    assert hamdex.dedup([]).kept == []
    assert not (tmp_path / "idx").exists()


def test_texts_are_fields_of_structs_and_several_columns():
    table = pa.table(
        {
            "title": ["rain", "rain", None, None],
            "meta": [{"body": RAIN}, {"body": RAIN}, {"body": RAIN}, None],
            "a.b": [BOOK] * 4,
        }
    )
    nested = hamdex.dedup(table, "meta.body")
    assert list(nested.mask) == [1, 0, 0, 1]
    assert nested.report["not_compared"] == {"null text": 1}
    assert nested.report["settings"]["text"] == "meta.body"
    joined = hamdex.dedup(table, "title, meta.body", verify="edit:1", distance=0)
    assert list(joined.mask) == [1, 0, 1, 1]
    # A column with exactly the given name takes precedence.
    assert list(hamdex.dedup(table, "a.b").mask) == [1, 0, 0, 0]
    for text, message in [
        ("body", 'no column "body" among title, meta, a.b'),
        ("meta.title", 'no field "title"'),
        ("title.x", 'no field "x"'),
        ("title,body", 'no column "body"'),
        ("meta", "is of type Struct"),
    ]:
        with pytest.raises(hamdex.UsageError, match=message):
            hamdex.dedup(table, text)


def test_texts_of_a_list_are_joined():
    def chat(*texts):
        return [{"role": "user", "content": text} for text in texts]

    messages = [chat("rain", RAIN), chat("rain", RAIN), chat(RAIN, "rain"), chat(None), [], None]
    parts = pa.array([["rain", RAIN], ["rain\n" + RAIN]] + [[]] * 4, pa.large_list(pa.string()))
    of_kinds = [{"type": "text", "text": "rain"}, {"type": "image"}, {"type": "text", "text": RAIN}]
    one_text = [{"type": "text", "text": "rain\n" + RAIN}]
    mixed = [of_kinds, one_text, [], [{"type": "image"}], [], None]
    columns = {"messages": messages, "parts": parts, "mixed": mixed, "n": [[1]] * 6}
    table = pa.table(columns)
    exact = {"verify": "edit:1", "distance": 0}
    for field in (None, "messages.content"):
        found = hamdex.dedup(table, field, **exact)
        assert list(found.mask) == [1, 0, 1, 1, 1, 1]
        assert found.report["settings"]["text"] == "messages.content"
        assert found.report["not_compared"] == {"null text": 3}
    for field in ("parts", "mixed"):
        assert list(hamdex.dedup(table, field, **exact).mask) == [1, 0, 1, 1, 1, 1]
    both = hamdex.dedup(table, "messages.content,parts", **exact)
    assert list(both.mask) == [1, 0, 1, 1, 1, 1]
    for text, message in [
        ("messages", "is of type List"),
        ("messages.said", 'no field "said"'),
        ("n", "is of type List"),
    ]:
        with pytest.raises(hamdex.UsageError, match=message):
            hamdex.dedup(table, text)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["body", "content"], "content"),
        (["article", "text"], "text"),
        (["x", "markdown"], "markdown"),
        (["raw_content", "document"], "raw_content"),
        (["内容", "markdown"], "markdown"),
        (["标题", "内容"], "内容"),
        (["TEXT", "content"], "TEXT"),
        (["Text", "text"], "text"),
    ],
)
def test_the_text_column_is_found_by_its_name(names, found):
    columns = {name: [RAIN, RAIN] if name == found else [RAIN, BOOK] for name in names}
    result = hamdex.dedup(pa.table(columns))
    assert list(result.mask) == [1, 0] and result.report["settings"]["text"] == found


@pytest.mark.parametrize("columns", [{"ID": ["x", "y"]}, {"ID": [1, 2], "id": ["x", "y"]}])
def test_the_id_column_is_found_in_capitals_too(columns):
    result = hamdex.dedup(pa.table({**columns, "text": [RAIN, RAIN]}))
    assert result.duplicates.column("id").to_pylist() == ["y"]


def test_a_table_without_a_default_text_column_is_rejected():
    with pytest.raises(hamdex.UsageError, match="of headline, note"):
        hamdex.dedup(pa.table({"headline": [RAIN], "note": [RAIN]}))


NEWEST = {
    "numbers as texts": (["9", "10", "2"], 1),
    "integers beyond floats": ([2**53, 2**53 + 1, 2**53 - 1], 1),
    "floats and nan": ([1.5, float("nan"), 2.5], 2),
    "times with offsets": (
        ["2024-05-06T10:00:00+09:00", "2024-05-06T05:00:00Z", "2024-05-06"],
        1,
    ),
    "dates": ([datetime.date(2024, 1, 9), datetime.date(2024, 1, 10), None], 1),
    "nulls": ([None, "a", None], 1),
}


@pytest.mark.parametrize("case", NEWEST)
def test_the_newest_is_chosen_by_value(case):
    values, best = NEWEST[case]
    table = pa.table({"text": [RAIN] * 3, "when": values})
    assert list(hamdex.dedup(table, keep="newest:when").mask) == [int(n == best) for n in range(3)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.date32(),
        pa.date64(),
        pa.timestamp("s"),
        pa.timestamp("ms", "Asia/Tokyo"),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.uint64(),
        pa.int16(),
        pa.float32(),
        pa.decimal128(9, 2),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
)
def test_every_ordered_type_can_rank_rows(kind):
    days = [19_000, 19_001, None, 18_999]
    if pa.types.is_temporal(kind):
        values = pa.array(days, pa.date32() if kind != pa.date64() else pa.date32()).cast(kind)
    elif pa.types.is_dictionary(kind) or kind == pa.string_view():
        values = pa.array([None if day is None else str(day) for day in days])
        values = values.dictionary_encode() if pa.types.is_dictionary(kind) else values.cast(kind)
    else:
        values = pa.array(days, pa.float64()).cast(kind)
    table = pa.table({"text": [RAIN] * 4, "when": values})
    assert list(hamdex.dedup(table, keep="newest:when").mask) == [0, 1, 0, 0]


def test_a_column_that_cannot_rank_rows_is_rejected():
    table = pa.table({"text": [RAIN, BOOK], "when": pa.nulls(2, pa.int64()), "list": [[1], [2]]})
    for column, message in [
        ("when", "no row has a value"),
        ("list", "have no order"),
        ("whn", 'no column "whn"'),
    ]:
        with pytest.raises(hamdex.UsageError, match=message):
            hamdex.dedup(table, keep=f"newest:{column}")


def test_the_preferred_row_of_equal_values_is_kept():
    table = pa.table(
        {
            "text": [RAIN, BOOK, "the sky", None, "x", RAIN],
            "url": ["u", "u", "u", "v", "v", None],
            "when": [3, 1, 2, 2, 1, 9],
        }
    )
    cases = [
        ("first", [1, 0, 0, 1, 0, 0], 3),
        ("longest", [1, 0, 0, 0, 1, 0], 3),
        ("newest:when", [0, 0, 0, 1, 0, 1], 3),
    ]
    for keep, mask, removed in cases:
        result = hamdex.dedup(table, keep=keep, unique_by="url")
        assert list(result.mask) == mask, keep
        report = result.report
        assert report["removed_unique_by"] == removed and report["removed"] == removed + 1
        assert report["kept"] + report["removed"] == report["rows"] == 6
        assert len(rows(result.duplicates)) == 1
    with pytest.raises(hamdex.UsageError, match='no column "link"'):
        hamdex.dedup(table, unique_by="link")


def hosts():
    """Three sources, one of which repeats the others except for its last row, and rows without."""
    texts = [f"article {n * n} speaks of {n * 7919} and of {n * 104729} alone" for n in range(60)]
    rows = [(text, "a.org") for text in texts[:30]] + [(text, "b.org") for text in texts[:25]]
    rows += [(text, None) for text in texts[30:33]] + [(None, "c.org"), (" ", " ")]
    return {
        "id": [f"{host}-{n}" for n, (_, host) in enumerate(rows)],
        "text": [text for text, _ in rows],
        "from": [{"host": host} for _, host in rows],
    }


WITHOUT = {"distance": 0, "verify": "none", "pipeline": "post"}


def test_every_source_is_counted_as_the_command_line_counts_it(cli):
    options = ["-k", "0", "--verify", "none", "--pipeline", "post", "--source-field", "from.host"]
    expected = cli(hosts(), *options)["report"]
    with pytest.warns(hamdex.DataWarning, match="25 of the 25 documents of b.org"):
        report = hamdex.dedup(pa.table(hosts()), source_field="from.host", **WITHOUT).report
    assert report["sources"] == expected["sources"] and report["warnings"] == expected["warnings"]
    counts = [(found["name"], found["documents"], found["kept"]) for found in report["sources"]]
    assert counts == [("b.org", 25, 0), ("a.org", 30, 30), ("(none)", 4, 4), ("c.org", 1, 1)]
    assert report["sources"][0]["farthest"] == {"id": "b.org-30", "kept_id": "a.org-0", "distance": 0}
    assert report["sources"][0]["removed_share"] == 1.0
    assert report["sources"][1]["largest_group"] == {"cluster": 1, "documents": 1}


@pytest.mark.filterwarnings("ignore::hamdex.DataWarning")
def test_sources_of_every_kind_of_table_are_counted():
    flat = hosts()
    flat["from"] = [value["host"] for value in flat["from"]]
    table = pa.table(flat)
    expected = hamdex.dedup(table, source_field="from", **WITHOUT).report["sources"]
    assert len(expected) == 4
    tables = [table.to_batches()[0], hamdex.Table(table)]
    for module in ("pandas", "polars", "datasets"):
        try:
            kind = __import__(module)
        except ImportError:
            continue
        make = {"pandas": "DataFrame", "polars": "DataFrame", "datasets": "Dataset.from_dict"}
        for name in make[module].split("."):
            kind = getattr(kind, name)
        tables.append(kind(flat))
    for data in tables:
        report = hamdex.dedup(data, source_field="from", **WITHOUT).report
        assert report["sources"] == expected, type(data)
    # Dropped rows are not counted in any source.
    report = hamdex.dedup(table, source_field="from", drop_empty=True, **WITHOUT).report
    counts = [(found["name"], found["documents"]) for found in report["sources"]]
    assert counts == [("b.org", 25), ("a.org", 30), ("(none)", 3)]


def test_sources_and_labels_can_have_any_type():
    when = datetime.date(2024, 1, 2)
    for values, ids, name, label in [
        ([7, 7, 7], [1, 2, 3], "7", 3),
        ([1.5, 1.5, 1.5], ["a", "b", "c"], "1.5", "c"),
        ([when] * 3, [when] * 3, "2024-01-02", "2024-01-02"),
        ([True] * 3, [None] * 3, "true", None),
    ]:
        table = pa.table({"text": [RAIN, BOOK, RAIN], "id": pa.array(ids), "n": pa.array(values)})
        (found,) = hamdex.dedup(table, source_field="n").report["sources"]
        assert (found["name"], found["documents"], found["removed"]) == (name, 3, 1)
        assert found["farthest"]["id"] == label
    assert hamdex.dedup([RAIN, RAIN]).report["sources"] == []
    with pytest.raises(hamdex.UsageError, match='no column "host"'):
        hamdex.dedup(table, source_field="host")
    empty = pa.table({"text": [RAIN, BOOK], "host": ["", None]})
    with pytest.raises(hamdex.DataError, match="no row has a value"):
        hamdex.dedup(empty, source_field="host")


def test_an_index_rejects_repeated_ids_without_on_repeat(tmp_path):
    ids = ["a", "b", "a", "c", "a"]
    texts = [RAIN, BOOK, BOOK + " again", None, None]
    table = pa.table({"id": ids, "text": texts})
    with pytest.raises(hamdex.DataError, match="rows 0 and 2 have the same id a"):
        hamdex.Index.build(tmp_path / "refused", table)
    assert not (tmp_path / "refused").exists()
    for choice, text in [("first", RAIN), ("last", BOOK + " again")]:
        made = hamdex.Index.build(tmp_path / choice, table, pipeline="post", on_repeat=choice)
        with made as index:
            assert index.get("a") == hamdex.Pipeline("post").fingerprint(text)
            built = index.built
            assert (built["rows"], built["documents"], built["repeated"]) == (5, 2, 1)
            assert built["not_compared"] == {"null text": 2} and built["rejects"] == 0
    with pytest.raises(hamdex.UsageError, match="on_repeat"):
        hamdex.Index.build(tmp_path / "refused", table, on_repeat="any")


def test_a_row_without_an_id_is_stored_under_its_number(tmp_path):
    table = pa.table({"id": ["a", None], "text": [RAIN, BOOK]})
    with hamdex.Index.build(tmp_path / "idx", table) as index:
        assert "a" in index and 1 in index and len(index) == 2


def test_too_many_invalid_ids_are_an_error(tmp_path):
    table = pa.table({"id": ["", *"abcdefgh"], "text": [f"{RAIN} {n}" for n in range(9)]})
    with pytest.raises(hamdex.DataError, match="1 of 9 rows"):
        hamdex.Index.build(tmp_path / "idx", table)
    for max_bad in [1, "1", "12%"]:
        with hamdex.Index.build(tmp_path / f"idx {max_bad}", table, max_bad=max_bad) as index:
            assert index.built["rejects"] == 1 and len(index) == 8
    with pytest.raises(hamdex.UsageError, match="max_bad"):
        hamdex.Index.build(tmp_path / "idx", table, max_bad="some")
