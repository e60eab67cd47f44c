"""Events from arrays, data frames, Arrow tables and files, and what is wrong with them."""

from __future__ import annotations

import datetime as dt
import pickle

import numpy as np
import pytest

import hopedgn
from hopedgn import Events, HopedgnError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COLUMNS = {"src": [3, 1, 3], "dst": [1, 2, 2], "time": [1.0, 2.0, 2.5], "label": [0, 1, 0], "feat0": [0.5, 1.5, 2.5]}


def test_every_way_in_gives_the_same_events(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    frame.to_csv(tmp_path / "events.csv", index=False)
    ways = [
        Events.from_pandas(frame),
        Events.from_arrow(pl.DataFrame(COLUMNS)),
        Events.from_arrow(pa.table(COLUMNS)),
        Events.from_arrow(pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)])),
        Events.read(tmp_path / "events.csv"),
        Events.from_numpy(
            COLUMNS["src"], COLUMNS["dst"], COLUMNS["time"], label=COLUMNS["label"], edge_features=COLUMNS["feat0"]
        ),
    ]
    for events in ways:
        assert events == ways[0]
        assert events.src.tolist() == [3, 1, 3] and events.label.tolist() == [0, 1, 0]
        assert events.edge_features.tolist() == [[0.5], [1.5], [2.5]]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_of_every_size_are_ids_and_times(dtype):
    columns = {"src": np.array([3, 1], dtype), "dst": np.array([1, 2], dtype), "time": np.array([4, 9], dtype)}
    for events in (Events.from_numpy(**columns), Events.from_arrow(pl.DataFrame(columns)), Events.from_pandas(pd.DataFrame(columns))):
        assert events.src.tolist() == [3, 1] and events.time.tolist() == [4.0, 9.0]


def test_text_ids_may_be_strings_categories_and_dictionaries():
    names = ["ann", "bob", "ann"]
    text = {"src": names, "dst": ["bob", "cem", "cem"], "time": [1, 2, 3]}
    expected = Events.from_numpy(**text)
    frame = pd.DataFrame(text)
    assert expected.names.tolist() == ["ann", "bob", "cem"]
    assert Events.from_pandas(frame) == expected
    assert Events.from_pandas(frame.astype({"src": "category"})) == expected
    assert Events.from_arrow(pl.DataFrame(text).with_columns(pl.col("src").cast(pl.Categorical))) == expected
    assert Events.from_arrow(pa.table({**text, "src": pa.array(names).dictionary_encode()})) == expected
    assert Events.from_arrow(pa.table({**text, "src": pa.array(names, pa.large_string())})) == expected


def test_numbers_written_as_text_stay_text_and_leading_zeros_count():
    events = Events.from_numpy(["007", "7"], ["7", "8"], [1, 2])
    assert events.names.tolist() == ["007", "7", "8"]


def test_times_with_a_time_zone_are_the_same_points_in_time_everywhere():
    zone = dt.timezone(dt.timedelta(hours=2))
    moments = [dt.datetime(2024, 1, 31, 14, 0, tzinfo=zone), dt.datetime(2024, 1, 31, 14, 0, 0, 500_000, tzinfo=zone)]
    columns = {"src": [1, 2], "dst": [2, 3]}
    naive = Events.from_numpy(**columns, time=np.array(["2024-01-31T12:00:00", "2024-01-31T12:00:00.5"], "datetime64[ms]"))
    assert naive.has_dates and naive.time.tolist() == [1706702400.0, 1706702400.5]
    frame = pd.DataFrame({**columns, "time": pd.to_datetime(moments)})
    assert frame["time"].dt.tz is not None
    polars = pl.DataFrame({**columns, "time": moments}).with_columns(pl.col("time").dt.convert_time_zone("Asia/Tokyo"))
    for events in (Events.from_pandas(frame), Events.from_numpy(**columns, time=moments), Events.from_arrow(polars)):
        assert events == naive
    assert len(naive.between("2024-01-31 12:00:00.2", None)) == 1
    assert len(naive.between(moments[1], None)) == 1


def test_rows_are_taken_as_they_stand_whatever_the_index_says():
    frame = pd.DataFrame(COLUMNS, index=[2, 0, 1])
    assert Events.from_pandas(frame) == Events.from_pandas(pd.DataFrame(COLUMNS))
    shuffled = pd.DataFrame(COLUMNS).iloc[[2, 0, 1]]
    with pytest.raises(HopedgnError, match=r"row 1, column 3 \(time\): found the time 1 after 2.5"):
        Events.from_pandas(shuffled)
    assert Events.from_pandas(shuffled, sort=True) == Events.from_pandas(pd.DataFrame(COLUMNS))


ERRORS = [
    (dict(src=[1, 2], dst=[2, 3], time=[1.0, float("nan")]), "row 1, column 3 (time): found the time NaN, expected a finite number"),
    (dict(src=[1, 2], dst=[2, 3], time=[2, 1]), "row 1, column 3 (time): found the time 1 after 2, expected times that never go "
     "backwards; sort the events by time, or pass sort=True"),
    (dict(src=[1, -2], dst=[2, 3], time=[1, 2]), "row 1, column 1 (src): found the negative node id -2, expected an integer of at "
     'least 0; read the ids as text: pass the column as strings, or ids="text" for a file'),
    (dict(src=[1.5, 2.0], dst=[2, 3], time=[1, 2]), "row 0, column 1 (src): found values of type floats, expected integers or text"),
    (dict(src=[1, 2], dst=[2, 3], time=["a", "b"]), "row 0, column 3 (time): found values of type text, expected numbers or dates"),
    (dict(src=[1, 2], dst=[2, 3], time=np.array(["2024-01-31", "NaT"], "datetime64[s]")), "row 1, column 3 (time): found no value"),
    (dict(src=np.array([1, "a"], dtype=object), dst=[2, 3], time=[1, 2]), "row 1, column 1 (src): found a str ('a') in a column of "
     "objects that begins with a int"),
    (dict(src=np.array(["a", None], dtype=object), dst=[2, 3], time=[1, 2]), "row 1, column 1 (src): found no value (None), expected "
     "one in every row; drop the rows without a value, or fill them in"),
    (dict(src=[1 + 2j, 2j], dst=[2, 3], time=[1, 2]), "found values of type complex128, expected integers or text"),
    (dict(src=[1, 2], dst=[2], time=[1, 2]), "found 1 values of dst, expected 2, as many as of src"),
    (dict(src=[], dst=[], time=[]), "found no events, expected at least one"),
    (dict(src=[1, 2], dst=[2, 3], time=[1, 2], edge_features=[[1.0]]), "edge_features: found an array of shape (1, 1), expected one row "
     "for each of the 2 events"),
    (dict(src=[[1, 2]], dst=[2], time=[1]), "column 1 (src): found an array of shape (1, 2), expected one value in every row"),
    (dict(src=[1], dst=[2], time=[2**53 + 1]), "found the time 9007199254740993, which would be rounded to 9007199254740992"),
]


@pytest.mark.parametrize(("columns", "message"), ERRORS)
def test_an_error_names_row_column_finding_and_remedy(columns, message):
    with pytest.raises(HopedgnError) as error:
        Events.from_numpy(**columns)
    assert message in str(error.value) and error.value.code


def test_wrong_types_are_type_errors_and_missing_files_are_not_found():
    with pytest.raises(TypeError, match="found values of type floats"):
        Events.from_numpy([1.5], [2], [1])
    with pytest.raises(FileNotFoundError, match="none.csv: could not open"):
        Events.read("none.csv")
    with pytest.raises(TypeError, match="expected a table that exports Arrow"):
        Events.from_arrow([1, 2])
    with pytest.raises(HopedgnError, match=r'found no time column among "src", "dst".*name the columns with src=, dst= and time='):
        Events.from_pandas(pd.DataFrame({"src": [1], "dst": [2]}))


def test_missing_values_of_arrow_and_pandas_are_named():
    table = pa.table({"src": [1, None], "dst": [2, 3], "time": [1, 2]})
    with pytest.raises(HopedgnError, match=r"row 1, column 1 \(src\): found no value, expected one in every row"):
        Events.from_arrow(table)
    frame = pd.DataFrame({"src": pd.array([1, None], "Int64"), "dst": [2, 3], "time": [1, 2]})
    with pytest.raises(HopedgnError, match=r"row 1, column 1 \(src\): found no value"):
        Events.from_pandas(frame)
    unused = pa.table({"src": [1, 2], "dst": [2, 3], "time": [1, 2], "note": [None, "x"], "list": [[1], [2]]})
    assert len(Events.from_arrow(unused)) == 2


def test_columns_are_views_that_cannot_be_changed(events):
    for column in (events.time, events.label, events.src_index):
        assert not column.flags.writeable and not column.flags.owndata
    time = Events.from_numpy([1], [2], [3.0]).time
    assert time.tolist() == [3.0], "a view keeps its events alive"


def test_slices_masks_and_times_select_events_as_a_file_of_these_rows_would(events):
    first = events[:100]
    assert len(first) == 100 and first == Events.from_numpy(events.src[:100], events.dst[:100], events.time[:100])
    middle = events.between(events.time[100], events.time[200])
    assert middle.time.min() >= events.time[100] and middle.time.max() < events.time[200]
    busy = events.src == 3
    assert set(events[busy].src) == {3}
    with pytest.raises(HopedgnError, match="found no events in this part"):
        events.between(1e9)
    with pytest.raises(HopedgnError, match="expected them to ascend"):
        events[[2, 1]]


def test_files_of_every_format_give_back_the_events(events, tmp_path):
    for ending in ("csv", "tsv.gz", "parquet", "ctdg"):
        events.write(tmp_path / f"mail.{ending}")
        assert Events.read(tmp_path / f"mail.{ending}") == events, ending
    assert pickle.loads(pickle.dumps(events)) == events


def test_splits_follow_their_rules(events):
    for rule in ("dyglib", "tgb", (0.5, 0.25, 0.25)):
        split = events.split(rule)
        train, val, test = split
        assert train.time.max() <= split.times[0] < val.time.min() and val.time.max() <= split.times[1] < test.time.min()
        assert (len(split.masked) > 0) == (rule == "dyglib")
    with pytest.raises(HopedgnError, match="expected three above 0 that sum to 1"):
        events.split((0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match='expected "dyglib"'):
        events.split("other")


def test_what_it_is_can_be_read(events):
    assert repr(events) == "Events(600 events of 40 nodes, times 1 to 592, named by integers, no features)"
    users = Events.from_numpy([1, 2], ["a", "b"], ["2024-01-31", "2024-02-01"], name="shop")
    text = 'Events("shop": 2 events of 4 nodes, bipartite, 2024-01-31 00:00:00 to 2024-02-01 00:00:00, named by text, no features)'
    assert repr(users) == text
