"""Packed entries are those that were packed, whatever their values; what is no block is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamwatch.core.join.cold.block import ARRIVAL, HEADER_BYTES, PACKED_ENTRY, pack, unpack
from streamwatch.core.join.layout import NO_TIME
from tests.tiers import examples

TIME_MS = st.integers(0, 253_402_300_799_999) | st.integers(1_700_000_000_000, 1_700_000_001_000)
NUMBER = st.integers(-1, 2**31 - 1) | st.integers(-1, 3)
ANY_ENTRY = st.tuples(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    TIME_MS,
    TIME_MS | st.just(NO_TIME),
    st.integers(0, 2**62),
    NUMBER,
    NUMBER,
    NUMBER,
    NUMBER,
    st.integers(0, 9),
    NUMBER,
)


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(ANY_ENTRY, max_size=100, unique_by=lambda row: row[ARRIVAL]))
def test_entries_come_back_as_they_were(rows):
    entries = np.array(rows, PACKED_ENTRY)
    assert unpack(pack(entries)).tolist() == rows


@settings(max_examples=examples(1), deadline=None)
@given(arrays(np.uint8, st.integers(0, 8), elements=st.integers(0, 255)))
def test_words_of_any_bits_come_back_as_they_were(seeds):
    random = np.random.default_rng(seeds.tolist() or [0])
    entries = np.frombuffer(random.bytes(64 * len(seeds)), PACKED_ENTRY)
    assert unpack(pack(entries)).tobytes() == entries.tobytes()


def test_what_is_alike_in_all_entries_takes_no_room():
    entries = np.zeros(1_000, PACKED_ENTRY)
    entries["arrival"] = 2**40 + np.arange(1_000)
    entries["low"] = 2**63
    entries["timestamp_ms"] = NO_TIME
    entries["model"] = -1
    assert len(pack(entries)) == HEADER_BYTES + 2 * len(entries), "two bytes of arrival"


def test_what_is_no_whole_block_is_refused():
    entries = np.zeros(10, PACKED_ENTRY)
    entries["arrival"] = np.arange(10)
    entries["low"] = np.arange(10) * 2**60
    block = pack(entries)
    another_version = b"\2" + block[1:]
    more_entries = block[:4] + b"\xff" + block[5:]
    too_wide = block[:8] + b"\x09" + block[9:]
    for spoilt in (block[:-1], block + b"\0", another_version, more_entries, too_wide, b"", block[:40]):
        with pytest.raises(ValueError, match="packed entries must be one whole block of version 1, got"):
            unpack(spoilt)


@pytest.mark.parametrize("claimed", [2, 1_000, 2**32 - 1])
def test_columns_without_bytes_do_not_make_entries_of_damage(claimed):
    """One entry has columns of no bytes, so that a block of any number of them is as long as it."""
    block = pack(np.zeros(1, PACKED_ENTRY))
    damaged = block[:4] + claimed.to_bytes(4, "little") + block[8:]
    with pytest.raises(
        ValueError, match=f"must differ in arrival, got {claimed:,} in a block that has 0 bytes"
    ):
        unpack(damaged)


def test_a_block_has_no_more_entries_than_bytes_whatever_is_damaged():
    entries = np.zeros(256, PACKED_ENTRY)
    entries["arrival"] = np.arange(256)
    block = pack(entries)
    assert unpack(block).tolist() == entries.tolist()
    one_more = block[:4] + (257).to_bytes(4, "little") + block[8:] + b"\0"
    with pytest.raises(ValueError, match="must differ in arrival, got 257"):
        unpack(one_more)
