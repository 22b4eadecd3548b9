"""What recorded lines mean, and which of them cannot be used."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.records.events import Invalid, Label, Outcome, Prediction
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.history.recordings.file import RecordingError
from streamwatch.history.recordings.lines import BadLine, Fitting, LineRecord, UnusableLines
from streamwatch.history.recordings.partitions import PartitionReader, RecordedOutcome
from streamwatch.history.recordings.recording import Recording
from streamwatch.history.replay.replay import ReplaySpec, default_topics, replay
from tests.layouts import TINY


def peak_bytes(work):
    """Tell how much memory was allocated at most while something was done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def nothing():
    """Stand where progress is shown."""


def read(path, mapping=None, **options):
    """What a file holds, in order, each with its record time; bad lines after it."""
    bad = UnusableLines(kept=100)
    with Recording(path, **options) as recording:
        reader = PartitionReader(default_topics(mapping), bad, None, closed=False)
        items = []
        for partition in reader.partitions([recording], nothing):
            for chunk in partition.chunks:
                for event, stamp_ms in zip(chunk.records.given(), chunk.stamps_ms.tolist(), strict=True):
                    if not isinstance(event, Outcome):
                        event.record_ms = stamp_ms
                    items += [] if isinstance(event, Invalid) else [event]
    return items + bad.first


@pytest.fixture
def written(tmp_path):
    def write(content, name="events.jsonl"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_json_line_is_a_prediction_a_label_or_an_outcome_by_what_it_holds(written):
    path = written(
        '{"id": "a", "model": "m", "prediction": "x", "timestamp": 5000,"scores": {"x": 0.9}, "else": [1]}\n'
        '{"id": "a", "label": "y", "timestamp": 7000}\n'
        '{"id": "b", "label": "y", "model": "m", "timestamp": 8000}\n'
        '{"id": "c", "model": "m", "prediction": "x", "label": "y", "timestamp": 9000}\n'
    )
    assert read(path) == [
        Prediction("a", "m", "x", 5000, 5000, {"x": 0.9}),
        Label("a", "y", 7000, None, 7000),
        Label("b", "y", 8000, "m", 8000),
        RecordedOutcome("m", "y", "x", 9000, 0, id="c"),
    ]


def test_csv_rows_are_read_by_their_header_and_empty_fields_are_absent(written):
    path = written('id,ignored,label,prediction,model\n1,z,,x,m\n1,,y,,\n2,,"y,1",x,m\n', "events.csv")
    assert read(path) == [
        Prediction("1", "m", "x", 1),
        Label("1", "y", 2),
        RecordedOutcome("m", "y,1", "x", 3, 0, id="2"),
    ]


def test_lines_without_timestamp_count_as_milliseconds_from_the_last_one_that_has_one(written):
    path = written(
        '{"id":1,"label":0}\n{"id":2,"label":0}\n{"id":3,"label":0,"timestamp":900}\n{"id":4,"label":0}\n'
    )
    assert [event.record_ms for event in read(path)] == [1, 2, 900, 901]


def test_numbers_and_booleans_are_the_text_they_are_on_a_topic(written):
    path = written('{"id": 1.0, "model": 2, "prediction": true, "label": 0.5}\n')
    assert read(path) == [RecordedOutcome("2", "0.5", "true", 1, 0, id="1")]


def test_bad_lines_are_counted_with_their_numbers_and_the_rest_is_read(written):
    path = written(
        b'\xef\xbb\xbf{"id": 1, "label": "a"}\n'
        b"{oops\n"
        b"\n"
        b"[1]\n"
        b'{"label": "a"}\n'
        b'{"id": 1}\n'
        b'{"id": 1, "prediction": "a"}\n'
        b'{"id": "\xff", "label": "a"}\n'
        b'{"id": 1, "label": "a", "timestamp": "yesterday"}\n'
        b'{"id": 1, "label": {"a": 1}}\n'
        b'{"id": 1, "label": "a\\u0000"}\n'
        b'{"id": 1, "model": "", "label": "a"}\n'
        b'{"id": 1, "model": "m", "prediction": "a", "scores": [1]}\n'
        b'{"id": 2, "label": "a"}'
    )
    good, last, *bad = read(path)
    assert good == Label("1", "a", 1)
    assert last == Label("2", "a", 2)
    assert bad[0].sample == "{oops"
    assert bad[5].sample == '{"id": "\\\\xff", "label": "a"}'
    assert [(b.number, b.reason) for b in bad] == [
        (2, "invalid_json"),
        (4, "not_an_object"),
        (5, "missing_id"),
        (6, "neither_prediction_nor_label"),
        (7, "missing_model"),
        (8, "invalid_utf8"),
        (9, "invalid_timestamp"),
        (10, "invalid_class"),
        (11, "invalid_class"),
        (12, "invalid_model"),
        (13, "invalid_scores"),
    ]


def test_bad_csv_rows_carry_their_physical_line(written):
    path = written(b'id,label\n1,a\n2,a,b\n"3\n",a\n\n4,\xff\n5,a\n', "events.csv")
    one, two, *bad = read(path)
    assert (one, two) == (Label("1", "a", 1), Label("5", "a", 2))
    assert sorted((b.number, b.reason) for b in bad) == [
        (3, "wrong_number_of_columns"),
        (5, "invalid_id"),
        (7, "invalid_utf8"),
    ]


def test_a_csv_field_too_long_for_the_reader_is_one_bad_line(written):
    path = written(f"id,label\n1,{'a' * 200_000}\n2,b\n", "events.csv")
    assert [type(item) for item in read(path)][-2] is Label
    assert any(isinstance(item, BadLine) and item.reason == "invalid_csv" for item in read(path))


@pytest.mark.parametrize("filler", [b"x", b" "])
@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("events.jsonl", b'{"id": "a", "model": "m", "prediction": "x"}\n' * 3),
        ("outcomes.jsonl", b'{"id": "a", "model": "m", "prediction": "x", "label": "x"}\n' * 3),
        ("kcat.jsonl", b'{"topic": "t", "partition": 0, "offset": 0, "payload": "{}"}\n' * 3),
        ("outcomes.csv", b"id,model,prediction,label\na,m,x,x\nb,m,x,x\n"),
        ("events.csv", b'id,model,prediction\na,m,x\n"b",m,x\n'),
        ("nothing", b""),
    ],
)
def test_a_few_kilobytes_that_unpack_to_one_endless_line_are_refused_by_name_and_number(
    tmp_path, name, head, filler
):
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(head) + gzip.compress(filler * (1 << 20)) * 200)
    (tmp_path / "empty.jsonl").touch()

    def refused():
        with pytest.raises(RecordingError, match=rf"{path.name}, line {head.count(10) + 1}: .*16 MiB"):
            replay(ReplaySpec([path], monitors=TINY))

    def none():
        replay(ReplaySpec([tmp_path / "empty.jsonl"], monitors=TINY))

    none()  # what is loaded once is not counted
    nothing = peak_bytes(none)
    assert peak_bytes(refused) - nothing < 100 << 20


def test_a_line_as_long_as_is_allowed_is_read(written):
    text = "y" * ((16 << 20) - 200)
    (found,) = read(written(f'{{"id": "a", "model": "m", "prediction": "x", "text": "{text}"}}\n'))
    assert found.id == "a"


@pytest.mark.parametrize("number", ["ts", "offset", "partition"])
def test_a_line_of_kcat_with_a_number_that_no_record_has_is_one_bad_line(written, number):
    payload = '"payload": "{\\"id\\": \\"a\\", \\"label\\": \\"x\\"}"'
    good = f'{{"topic": "t", "partition": 0, "offset": 0, "ts": 1, {payload}}}'
    bad = good.replace(f'{number}": ', f'{number}": {10**19}')
    path = written(f"{good}\n{bad}\n", "t.kcat")
    first, second = read(path)
    assert isinstance(first, Label)
    assert (second.number, second.reason) == (2, "not_of_kcat")


def test_a_csv_header_too_long_for_the_reader_is_refused(written):
    with pytest.raises(RecordingError, match=r"events.csv: expected a CSV header, got a field larger"):
        read(written("x" * 200_000, "events.csv"))


def test_other_columns_than_the_named_ones_are_refused(written):
    with pytest.raises(
        RecordingError, match="expected a CSV header with id, model, prediction, label; got i, y"
    ):
        read(written("i,y\n1,a\n", "events.csv"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RecordingError, match=r"none\.csv cannot be read: No such file"):
        Recording(tmp_path / "none.csv")


def test_a_compressed_file_is_unpacked(written):
    path = written(gzip.compress(b"id,label\n1,a\n"), "events.csv.gz")
    assert read(path) == [Label("1", "a", 1)]


def test_a_compressed_file_that_breaks_off_is_refused(written):
    whole = gzip.compress("".join(f'{{"id":{n},"label":"{n * n}"}}\n' for n in range(20_000)).encode())
    with pytest.raises(RecordingError, match="breaks off after line"):
        read(written(whole[: len(whole) // 2], "events.jsonl.gz"))


def test_a_compressed_file_with_damaged_bytes_is_refused(written):
    whole = bytearray(
        gzip.compress("".join(f'{{"id":{n},"label":"{n * n}"}}\n' for n in range(20_000)).encode())
    )
    assert not whole[3], "the header has ten bytes"
    for damaged, place in (([0b111], 10), ([0xFF] * 64, len(whole) // 2)):  # no type of block; no such code
        whole[place : place + len(damaged)] = damaged
        with pytest.raises(RecordingError, match=r"events\.jsonl\.gz (breaks off|cannot be read).*damaged"):
            read(written(bytes(whole), "events.jsonl.gz"))


@pytest.mark.parametrize(
    ("content", "kind"), [("id,label\n1,a\n", "csv"), ('\n {"id":1,"label":"a"}\n', "jsonl")]
)
def test_without_a_telling_name_the_first_character_decides(written, content, kind):
    assert [type(item) for item in read(written(content, f"events-{kind}"))] == [Label]


@pytest.mark.parametrize("content", [b"id,label\n1,a\n", b'{"id":1,"label":"a"}\n'])
def test_a_dash_is_standard_input(monkeypatch, content):
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read("-") == [Label("1", "a", 1)]
    assert Recording("-").file.total_bytes is None
    assert not stdin.buffer.closed


@pytest.fixture(name="pipe")
def named_pipe(tmp_path):
    """Return the path of a pipe from which the bytes given can be read once."""

    def begun(content):
        os.mkfifo(tmp_path / "pipe")
        Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True).start()
        return tmp_path / "pipe"

    return begun


def test_a_pipe_is_replayed_like_a_file(pipe):
    result = replay(ReplaySpec([pipe(b"id,model,prediction,label\n1,m,a,a\n2,m,a,b\n")]))
    assert (result.lines, result.outcomes) == (2, 2)


def test_parquet_in_a_pipe_is_refused_as_its_end_cannot_be_read_first(pipe):
    pytest.importorskip("pyarrow")
    with pytest.raises(RecordingError, match=r"expected the name of a Parquet file.* got a pipe"):
        read(pipe(b"PAR1" + bytes(100)))


@pytest.mark.slow
def test_progress_counts_the_bytes_of_the_file(written):
    path = written("".join(f'{{"id":{n},"label":"a"}}\n' for n in range(50_000)))
    with Recording(path) as recording:
        items = recording.records()
        next(items)
        assert 0 < recording.file.read_bytes < recording.file.total_bytes
        list(items)
        assert recording.file.read_bytes == recording.file.total_bytes == path.stat().st_size


@pytest.mark.parametrize("unit", ["s", "iso8601"])
def test_timestamps_may_have_another_unit(written, unit):
    stamp = {"s": "1700000000", "iso8601": '"2023-11-14T22:13:20Z"'}[unit]
    assert (
        read(written(f'{{"id":1,"label":"a","timestamp":{stamp}}}\n'), TopicMapping(timestamp_unit=unit))[
            0
        ].record_ms
        == 1_700_000_000_000
    )


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = (
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.dictionaries(st.text(max_size=2), st.floats(-0.5, 1.5), max_size=2)
)


@given(
    st.sampled_from(["prediction", "label"]),
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("id", "model", "timestamp", "fold", "scores"), ANYTHING)
    ),
    ANYTHING,
)
def test_a_line_means_what_the_same_record_means_on_a_topic(side, fields, target):
    value = json.dumps({**fields, side: target}).replace("NaN", "1e999").replace("Infinity", "1e999").encode()
    record = LineRecord(1, value)
    theirs = JsonDecoder(DecoderSpec("t", side, TopicMapping())).decode(record, 0)
    (ours,) = Fitting(default_topics()).decode([record], None)
    if isinstance(theirs, Invalid):
        assert isinstance(ours, Invalid)
    else:
        assert ours == theirs


def test_rows_of_parquet_are_values_of_records(tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "outcomes.parquet"
    at = datetime(2026, 11, 1, 12, tzinfo=UTC)
    rows = {
        "id": ["1", "2"],
        "prediction": pa.array(["a", None]),
        "score": [0.5, 1.0],
        "nested": [{"model": "m", "none": None}, {"model": "n", "none": None}],
        "timestamp": pa.array([at, at + timedelta(milliseconds=1)], pa.timestamp("us", "UTC")),
        "naive": pa.array([datetime(2026, 11, 1, 12)] * 2, pa.timestamp("ms")),  # noqa: DTZ001
        "scores": pa.array([[("a", 0.5), ("b", None)], None], pa.map_(pa.string(), pa.float64())),
        "raw": pa.array([[(1, b"x")], None], pa.map_(pa.int32(), pa.binary())),
    }
    pq.write_table(pa.table(rows), file)
    with Recording(file) as recording:
        values = [json.loads(record.value or b"") for record in recording.records()]
    at_ms = 1_793_534_400_000
    first = {"id": "1", "prediction": "a", "score": 0.5, "nested": {"model": "m"}}
    second = {"id": "2", "score": 1.0, "nested": {"model": "n"}}
    assert values == [
        {**first, "timestamp": at_ms, "naive": at_ms, "scores": {"a": 0.5}, "raw": {"1": "x"}},
        {**second, "timestamp": at_ms + 1, "naive": at_ms},
    ]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"id,model\n1,m\n"])
def test_what_is_no_parquet_is_refused_by_name(tmp_path: Path, content: bytes):
    pytest.importorskip("pyarrow")
    file = tmp_path / "outcomes.parquet"
    file.write_bytes(content)
    with (
        Recording(file) as recording,
        pytest.raises(RecordingError, match=r"outcomes\.parquet cannot be read"),
    ):
        list(recording.records())


def test_a_replay_of_parquet_has_the_numbers_of_the_same_lines(tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        {
            "id": str(n),
            "model": "m",
            "prediction": "ab"[n % 3 % 2],
            "label": "ab"[n % 2],
            "timestamp": 1_000 + n,
        }
        for n in range(200)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = [replay(ReplaySpec([tmp_path / f"rows.{kind}"])) for kind in ("parquet", "jsonl")]
    assert found[0].outcomes == found[1].outcomes == len(rows)
    assert found[0].families == found[1].families


def test_whole_decimals_of_parquet_keep_all_digits_as_ids_of_databases_are_decimals(tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "outcomes.parquet"
    ids = ["9007199254740993", "9007199254740992", "-12345678901234567890123456789012345678", "7"]
    rows = {
        "id": pa.array([Decimal(each) for each in ids], pa.decimal128(38, 0)),
        "price": pa.array([Decimal(each) for each in ("1.50", "2.00", "-0.25", "0.00")], pa.decimal128(9, 2)),
    }
    pq.write_table(pa.table(rows), file)
    with Recording(file) as recording:
        values = [json.loads(record.value or b"") for record in recording.records()]
    assert [str(value["id"]) for value in values] == ids
    assert [value["price"] for value in values] == [1.5, 2, -0.25, 0]


def test_nanoseconds_and_bytes_of_parquet_are_read_wherever_they_are(tmp_path: Path):
    """Columns that no mapping names, such as a hash or a duration, must not make a file unreadable."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    at_ns = 1_793_534_400_123_456_789
    rows = {
        "timestamp": pa.array([at_ns], pa.timestamp("ns", "Europe/Berlin")),
        "nested": pa.array([{"at": at_ns}], pa.struct([("at", pa.timestamp("ns"))])),
        "listed": pa.array([[at_ns]], pa.list_(pa.timestamp("ns"))),
        "mapped": pa.array([[("a", at_ns)]], pa.map_(pa.string(), pa.timestamp("ns"))),
        "coded": pa.array([at_ns], pa.timestamp("ns")).dictionary_encode(),
        "took": pa.array([1_500_000_001], pa.duration("ns")),
        "day_time": pa.array([1_500_000_001], pa.time64("ns")),
        "hash": pa.array([b"\xff\x00"], pa.binary()),
        "name": pa.array([b"caf\xc3\xa9"], pa.binary()),
    }
    pq.write_table(pa.table(rows), tmp_path / "outcomes.parquet")
    with Recording(tmp_path / "outcomes.parquet") as recording:
        [value] = [json.loads(record.value or b"") for record in recording.records()]
    at_ms = at_ns // 1_000_000
    assert value == {
        "timestamp": at_ms,
        "nested": {"at": at_ms},
        "listed": [at_ms],
        "mapped": {"a": at_ms},
        "coded": at_ms,
        "took": "PT1.5S",
        "day_time": "00:00:01.500000",
        "hash": "/wA=",
        "name": "café",
    }


def test_a_date_beyond_the_calendar_in_parquet_is_refused_with_its_row(tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "outcomes.parquet"
    pq.write_table(pa.table({"timestamp": pa.array([0, 2**60], pa.timestamp("ms"))}), file)
    where = r"outcomes\.parquet, row 1 or later, column timestamp: expected values that JSON can hold"
    with Recording(file) as recording, pytest.raises(RecordingError, match=where):
        list(recording.records())


@pytest.mark.parametrize("size", [5, 12, 25])
@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.jsonl.gz", "rows.gz"])
def test_a_compressed_file_that_breaks_off_at_its_beginning_is_refused_by_name(tmp_path: Path, name, size):
    (tmp_path / name).write_bytes(gzip.compress(b"id,model,prediction,label\n" * 99)[:size])
    with (
        pytest.raises(RecordingError, match=rf"{name} (cannot be read|breaks off)"),
        Recording(tmp_path / name) as recording,
    ):
        list(recording.records())


@pytest.mark.parametrize("first", [12, 20_000])
def test_damaged_compressed_bytes_are_refused_by_name(tmp_path: Path, first: int):
    rows = "".join(f"{hash(str(i))},m,a,b\n" for i in range(9_999))
    damaged = bytearray(gzip.compress(f"id,model,prediction,label\n{rows}".encode()))
    damaged[first : first + 99] = bytes(each ^ 255 for each in damaged[first : first + 99])
    (tmp_path / "rows.csv.gz").write_bytes(damaged)
    with (
        pytest.raises(RecordingError, match=r"rows\.csv\.gz (cannot be read|breaks off)"),
        Recording(tmp_path / "rows.csv.gz") as recording,
    ):
        list(recording.records())


def test_timestamps_of_a_log_are_of_the_broker_only_where_all_of_a_chunk_are_as_in_a_fetch(tmp_path: Path):
    file = tmp_path / "log.jsonl"
    value = {"id": "1", "model": "m", "prediction": "a"}
    record = {"topic": "predictions", "partition": 0, "payload": value}
    kinds = ["logappend", "logappend", "create"]
    lines = [json.dumps({**record, "offset": i, "ts": 1 + i, "tstype": kind}) for i, kind in enumerate(kinds)]
    found: list[bool] = []
    for lasting in (lines[:2], lines):
        file.write_text("\n".join(lasting), encoding="utf-8")
        with Recording(file) as recording:
            reader = PartitionReader(default_topics(), UnusableLines(), None, closed=False)
            found += [c.appended for each in reader.partitions([recording], nothing) for c in each.chunks]
    assert found == [True, False]
