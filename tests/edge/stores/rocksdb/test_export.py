"""A state comes out of its file as it went in, or not at all."""

from __future__ import annotations

import io
import zlib

import msgspec
import pytest

from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.kind import StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb import RocksStore, exporting
from streamwatch.edge.stores.rocksdb.database import FAMILIES, SCHEMA
from streamwatch.edge.stores.rocksdb.exporting import export_state, import_state
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from tests.core.join.join_stream import alive, label, predict
from tests.edge.stores.rocksdb.stream import DurableStream, digested, rocks_spec
from tests.edge.stores.rocksdb.written_state import contents


@pytest.fixture
def stream(tmp_path):
    stream = DurableStream(tmp_path / "state", JoinSpec())
    for start in range(0, 600, 100):
        stream.feed(*digested(predict(str(n), at=n) for n in range(start, start + 100)))
        stream.feed(*digested(label(str(n), at=n) for n in range(start, start + 50)))
        stream.commit(journal=b"entry", models={"m": b"snapshot"}, outbox={"n": b"o"})
    yield stream
    stream.store.close()


def exported(directory):
    file = io.BytesIO()
    state = Inspection(directory, closed=True)
    try:
        _, size = export_state(state, file)
    finally:
        state.close()
    assert size == len(file.getvalue())
    return file.getvalue()


@pytest.fixture
def file(stream, monkeypatch):
    monkeypatch.setattr(exporting, "FRAME_BYTES", 2_000)
    stream.store.close()
    return exported(stream.rocks.directory)


def entries(directory):
    state = Inspection(directory)
    try:
        return {family: list(state.items(family)) for family in FAMILIES}
    finally:
        state.close()


def test_every_entry_comes_out_as_it_went_in(stream, file, tmp_path):
    head = import_state(io.BytesIO(file), tmp_path / "deep" / "copy")
    assert head.identity == stream.store.identity
    assert entries(tmp_path / "deep" / "copy") == entries(stream.rocks.directory)
    copy, state = Inspection(tmp_path / "deep" / "copy"), Inspection(stream.rocks.directory)
    assert (copy.identity, copy.schema, copy.manifest) == (state.identity, state.schema, state.manifest)
    assert copy.created_s == pytest.approx(state.created_s, abs=0.001)
    copy.close()
    state.close()


def test_the_join_goes_on_from_the_copy_as_from_the_original(stream, file, tmp_path):
    import_state(io.BytesIO(file), tmp_path / "copy")
    copy = DurableStream(tmp_path / "copy", JoinSpec())
    copy.reopen()
    stream.reopen()
    more = digested([label(str(n), at=700) for n in range(0, 600, 7)] + [predict("3", "y", 700)])
    assert copy.feed(*more) == stream.feed(*more)
    assert copy.pipeline.snapshot() == stream.pipeline.snapshot()
    assert alive(copy) == alive(stream)
    copy.store.close()


def test_exporting_changes_nothing_and_is_the_same_every_time(stream, file):
    before = contents(stream.rocks.directory)
    assert exported(stream.rocks.directory) == file
    assert contents(stream.rocks.directory) == before


def frame_ends(file):
    at = len(exporting.MAGIC)
    while at < len(file):
        length, _ = exporting._FRAME.unpack_from(file, at)
        at += exporting._FRAME.size + length
        yield at


@pytest.mark.slow
def test_a_file_cut_off_anywhere_is_refused_and_nothing_is_left(file, tmp_path):
    ends = list(frame_ends(file))
    assert len(ends) > 8
    for cut in {0, 5, *ends[:-1], *(end - 1 for end in ends), *(end + 3 for end in ends[:-1])}:
        with pytest.raises(StateRefused, match=r"cut off|no export"):
            import_state(io.BytesIO(file[:cut]), tmp_path / "copy")
        assert not (tmp_path / "copy").exists()


@pytest.mark.slow
def test_an_altered_file_is_refused_and_nothing_is_left(file, tmp_path):
    (tmp_path / "copy").mkdir()
    for offset in range(0, len(file), len(file) // 40):
        altered = bytearray(file)
        altered[offset] ^= 0x10
        with pytest.raises(StateRefused):
            import_state(io.BytesIO(bytes(altered)), tmp_path / "copy")
        assert list((tmp_path / "copy").iterdir()) == []


def test_frames_left_out_swapped_or_added_are_refused(file, tmp_path):
    ends = list(frame_ends(file))
    third, fourth = file[ends[2] : ends[3]], file[ends[3] : ends[4]]
    for altered in (
        file[: ends[2]] + file[ends[3] :],
        file[: ends[2]] + fourth + third + file[ends[4] :],
        file + third,
        file + b"\0",
    ):
        with pytest.raises(StateRefused, match="cut off or was altered"):
            import_state(io.BytesIO(altered), tmp_path / "copy")
        assert not (tmp_path / "copy").exists()


def test_something_else_is_no_export(tmp_path):
    with pytest.raises(StateRefused, match="the file is no export of a state"):
        import_state(io.BytesIO(b"PK\x03\x04 and so on, at some length"), tmp_path / "copy")


def headed(schema):
    deflated = zlib.compress(msgspec.msgpack.encode({"schema": schema, "identity": "i", "created_s": 1.0}))
    return exporting.MAGIC + exporting._FRAME.pack(len(deflated), zlib.crc32(deflated)) + deflated


def test_another_schema_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(StateNewer, match=f"the export has schema 99, this program knows up to {SCHEMA}"):
        import_state(io.BytesIO(headed(99)), tmp_path / "copy")
    with pytest.raises(
        StateRefused, match=f"has schema 0, this program reads {SCHEMA} and nothing older: import it"
    ):
        import_state(io.BytesIO(headed(0)), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_directory_that_holds_something_is_refused_and_left_alone(stream, file, tmp_path):
    before = contents(stream.rocks.directory)
    with pytest.raises(StateRefused, match="is not empty"):
        import_state(io.BytesIO(file), stream.rocks.directory)
    assert contents(stream.rocks.directory) == before
    (tmp_path / "volume" / "lost+found").mkdir(parents=True)
    import_state(io.BytesIO(file), tmp_path / "volume")
    assert entries(tmp_path / "volume") == entries(stream.rocks.directory)


def test_a_state_without_commits_can_be_moved(tmp_path):
    RocksStore.open(rocks_spec(tmp_path / "state")).close()
    import_state(io.BytesIO(exported(tmp_path / "state")), tmp_path / "copy")
    assert entries(tmp_path / "copy") == entries(tmp_path / "state")
    RocksStore.open(rocks_spec(tmp_path / "copy")).close()


@pytest.mark.parametrize(
    "head",
    [
        b"\xa1\xff",
        b"\x91" * 100_000,
        *(
            msgspec.msgpack.encode({"schema": SCHEMA, "identity": "x", "created_s": made})
            for made in (float("inf"), float("nan"), -1.0, 1e300)
        ),
    ],
)
def test_a_head_that_no_export_has_is_refused_although_its_checksum_fits(head, tmp_path):
    deflated = zlib.compress(head)
    frame = exporting._FRAME.pack(len(deflated), zlib.crc32(deflated)) + deflated
    with pytest.raises(StateRefused, match="export the state again"):
        import_state(io.BytesIO(exporting.MAGIC + frame), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
