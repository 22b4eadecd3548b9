"""Packed entries are those that were packed, whatever their values; what is no block is refused."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamwatch.core.join.cold.block import HEADER_BYTES, PACKED_ENTRY
from streamwatch.core.join.layout import NO_TIME
from tests.core.join.cold.one_block import pack, unpack
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
@given(st.lists(ANY_ENTRY, max_size=100))
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
    entries["low"] = 2**63
    entries["timestamp_ms"] = NO_TIME
    entries["model"] = -1
    assert len(pack(entries)) == HEADER_BYTES


def test_what_is_no_whole_block_is_known():
    entries = np.zeros(10, PACKED_ENTRY)
    entries["low"] = np.arange(10) * 2**60
    block = pack(entries)
    another_version = b"\2" + block[1:]
    more_entries = block[:4] + b"\xff" + block[5:]
    too_wide = block[:8] + b"\x09" + block[9:]
    for spoilt in (block[:-1], block + b"\0", another_version, more_entries, too_wide, b"", block[:40]):
        assert unpack(spoilt) is None
