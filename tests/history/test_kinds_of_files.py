"""Files are known by their first bytes, and one that cannot be read is refused with what it is instead."""

from __future__ import annotations

import gzip
import io
import json
from types import SimpleNamespace

import pytest

from streamwatch.core.records.events import Outcome
from streamwatch.history.recordings.file import RecordingError, printable
from streamwatch.history.recordings.recording import Recording
from streamwatch.history.replay.replay import ReplaySpec, replay
from tests.history.test_recordings import read

CSV = b"id,model,prediction,label\n1,m,a,a\n2,m,a,b\n"
LINE = b'{"id": 1, "model": "m", "prediction": "a", "label": "a"}\n'


def outcomes(path):
    return [each for each in read(path) if isinstance(each, Outcome)]


@pytest.mark.parametrize(
    ("content", "name"), [(CSV, "outcomes.csv"), (LINE, "outcomes.jsonl"), (CSV, "dump")]
)
def test_gzipped_bytes_are_decompressed_under_any_name(content, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    plain = outcomes(path)
    path.write_bytes(gzip.compress(content))
    assert outcomes(path) == plain != []


def test_gzipped_standard_input_is_decompressed(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(CSV))))
    with Recording("-") as recording:
        assert len(list(recording.records())) == 2


def test_a_parquet_file_is_known_by_its_first_bytes(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"id": 1, "model": "m", "prediction": "a", "label": "b"}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "part-0")
    assert len(outcomes(tmp_path / "part-0")) == 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x28\xb5\x2f\xfd\x04\x00", "is compressed by zstd"),
        (b"\xfd7zXZ\x00\x00", "is compressed by xz"),
        (b"BZh91AY&SY", "is compressed by bzip2"),
        (b"PK\x03\x04\x14\x00", "is a zip archive, or a spreadsheet"),
        (CSV.decode().encode("utf-16"), "is UTF-16 text"),
        (LINE.decode().encode("utf-16"), "is UTF-16 text"),
        (b"Obj\x01\x04\x14avro.codec", "is an Avro file"),
        (b"ARROW1\x00\x00", "is an Arrow or Feather file"),
    ],
)
@pytest.mark.parametrize("name", ["outcomes.csv", "outcomes.jsonl", "outcomes"])
def test_a_file_of_another_kind_is_refused_with_what_it_is(content, kind, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=rf"{name} {kind}: expected UTF-8 text, .*; convert it first"):
        read(path)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("id;model;prediction;label", "got columns separated by semicolons"),
        ('"id";"model";"prediction";"label"', "got columns separated by semicolons"),
        ("id\tmodel\tprediction\tlabel", "got columns separated by tabs"),
        ("id|model|prediction|label", "got columns separated by vertical bars"),
        ("id,model,prediction,label,label", "expected one column label in the CSV header"),
        ("id,model,prediction,label,id", "expected one column id in the CSV header"),
        ("id,prediction,label,timestamp,timestamp", "expected one column timestamp in the CSV header"),
        ("id,prediction,label,größe", "expected a CSV header in UTF-8"),
        ("i\x1b[31m,y", r"got i\\x1b\[31m, y"),
    ],
)
def test_a_csv_header_that_cannot_be_meant_is_refused(header, found, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(header.encode("latin-1") + b"\n1,m,a,a\n")
    with pytest.raises(RecordingError, match=found):
        read(path)


def test_a_long_header_is_shown_in_part(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(",".join(f"column{k}" for k in range(1_000)) + "\n1\n")
    with pytest.raises(RecordingError) as error:
        read(path)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_csv_file_holds_no_lines(content, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(content)
    assert read(path) == []


def test_blank_lines_before_a_csv_header_are_skipped(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(b"\n\n" + CSV)
    assert len(outcomes(path)) == 2


def test_a_csv_row_that_cannot_be_read_is_explained(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(CSV + b'3,m,"' + b"x" * 200_000 + b'",a\n')
    *_, bad = read(path)
    assert (bad.number, bad.reason) == (4, "invalid_csv")
    assert bad.why == "field larger than field limit (131072)"


def test_a_file_given_twice_is_refused(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_bytes(CSV)
    (tmp_path / "link.csv").symlink_to(path)
    for sources in ([path, path], [path, tmp_path / "link.csv"], ["-", "-"]):
        with pytest.raises(RecordingError, match="expected each file once, got this one twice"):
            replay(ReplaySpec(sources))


@pytest.mark.parametrize(
    ("unit", "words"),
    [(None, "milliseconds since 1970 (timestamp_unit: ms)"), ("iso8601", "(timestamp_unit: iso8601)")],
)
def test_an_invalid_timestamp_is_explained_with_the_unit_that_was_expected(unit, words, tmp_path):
    from streamwatch.edge.decoders.mapping import TopicMapping  # noqa: PLC0415

    path = tmp_path / "outcomes.jsonl"
    path.write_text(json.dumps({"id": 1, "label": "a", "timestamp": "1772442000523000"}) + "\n")
    [bad] = read(path, TopicMapping(**({} if unit is None else {"timestamp_unit": unit})))
    assert bad.reason == "invalid_timestamp"
    assert words in bad.why


def test_names_are_printable():
    assert printable("größe.csv") == "größe.csv"
    assert printable("a\x1b[31m\udce9.csv") == "a\\x1b[31m\\xe9.csv"
