"""A manifest that RocksDB would read in part, as if a crash had cut it short, is refused before it does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise

import pytest
from aiokafka.record.util import calc_crc32c

from streamwatch.core.specs import JoinSpec
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.edge.stores.rocksdb import RocksStore
from streamwatch.edge.stores.rocksdb.database import (
    HEADER_BYTES,
    MANIFEST_BLOCK_BYTES,
    require_whole_manifest,
)
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from tests.core.join.join_stream import predict
from tests.edge.stores.rocksdb.stream import DurableStream, digested, rocks_spec
from tests.tiers import by_tier

LENGTH_BITS = 16


def record(content: bytes, length: int | None = None) -> bytes:
    """A record of a log as RocksDB's wiki has it, with a length of its own if need be."""
    checksum = calc_crc32c(b"\x01" + content)
    stored = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
    size = len(content) if length is None else length
    return stored.to_bytes(4, "little") + size.to_bytes(2, "little") + b"\x01" + content


@pytest.fixture
def written(tmp_path):
    """A state after several merges, so that its manifest has records enough."""
    stream = DurableStream(tmp_path / "state", JoinSpec())
    for number in range(4):
        name = f"model {number}"
        stream.feed(*digested(predict(f"{number}-{n}", "x", number * 1_000, name) for n in range(20)))
        stream.commit()
        stream.store._database.compact()
    stream.store.close()
    return tmp_path / "state"


def manifest(directory):
    return directory / (directory / "CURRENT").read_text().strip()


def lengths(content: bytes) -> Iterator[int]:
    """Where the lengths are, as far as they lead."""
    position = 0
    while position + HEADER_BYTES <= len(content):
        yield position + 4
        position += HEADER_BYTES + int.from_bytes(content[position + 4 : position + 6], "little")
    assert position == len(content)


def refusal(directory) -> str:
    with pytest.raises(StateDamaged) as raised:
        RocksStore.open(rocks_spec(directory))
    return str(raised.value)


@pytest.mark.slow
def test_every_flipped_bit_of_every_length_is_refused_by_name_and_nothing_is_changed(written, tmp_path):
    whole = manifest(written).read_bytes()
    offsets = list(lengths(whole))
    assert len(offsets) > 10
    flips = [(offset, bit) for offset in offsets for bit in range(LENGTH_BITS)]
    for offset, bit in flips[:: by_tier(fast=7, default=1, everything=1)]:
        copy = tmp_path / "copy"
        shutil.copytree(written, copy)
        content = bytearray(whole)
        content[offset + bit // 8] ^= 1 << bit % 8
        manifest(copy).write_bytes(content)
        before = {path.name for path in copy.glob("*.sst")}
        assert refusal(copy).startswith(f"the state is damaged: {manifest(copy)} "), (offset, bit)
        assert {path.name for path in copy.glob("*.sst")} == before
        shutil.rmtree(copy)


def test_a_length_of_the_last_record_that_reaches_past_the_end_is_reported_with_what_it_was(written):
    path = manifest(written)
    content = bytearray(path.read_bytes())
    *_, before, last = lengths(bytes(content))
    length = len(content) - (last + 3)
    content[last + 1] ^= 0x40
    path.write_bytes(content)
    message = (
        f"the record at byte {last - 4} has a length of {length + 0x4000} bytes, its checksum is that of"
    )
    assert f"{message} {length})" in refusal(written)
    with pytest.raises(StateDamaged, match="its checksum is that of"):
        Inspection(written)
    assert before < last


def test_a_manifest_cut_short_anywhere_is_left_to_rocksdb(written):
    """As a power cut may leave it: what was not on the disk was promised to nobody."""
    path = manifest(written)
    whole = path.read_bytes()
    for since, until in pairwise([*lengths(whole), len(whole) + 4]):
        for end in {since - 4, since - 1, since + 3, (since + until) // 2, until - 5}:
            path.write_bytes(whole[:end])
            require_whole_manifest(written)
    path.write_bytes(whole + record(bytes(50))[:20])
    RocksStore.open(rocks_spec(written)).close()


@pytest.mark.parametrize("size", [0, 1, 300, 5_000])
def test_what_lies_before_the_last_block_does_not_matter(tmp_path, size):
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    full = record(bytes(MANIFEST_BLOCK_BYTES - HEADER_BYTES))
    sound = full + record(b"one") + record(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    path = tmp_path / "MANIFEST-000001"
    path.write_bytes(full + full)
    require_whole_manifest(tmp_path)
    path.write_bytes(sound)
    require_whole_manifest(tmp_path)
    path.write_bytes(full + record(b"one", length=6_000) + sound[len(full) + HEADER_BYTES + 3 :])
    with pytest.raises(
        StateDamaged, match=f"at byte {MANIFEST_BLOCK_BYTES} has a length of 6000 .* that of 3"
    ):
        require_whole_manifest(tmp_path)


@pytest.mark.parametrize("current", [None, b"", b"\xff\xff", b"a\x00b", b"..", b"MANIFEST-000009\n"])
def test_what_names_no_manifest_is_left_to_rocksdb(tmp_path, current):
    if current is not None:
        (tmp_path / "CURRENT").write_bytes(current)
    require_whole_manifest(tmp_path)
    require_whole_manifest(tmp_path / "absent")
