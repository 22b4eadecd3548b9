"""The naive join, which all others are held against, says what it said when it was frozen."""

from __future__ import annotations

import json

from tests.core.join.frozen import FILE, STREAMS, digest_of


def test_the_oracle_says_of_every_stream_what_it_said() -> None:
    frozen = json.loads(FILE.read_text())
    assert len(frozen) == STREAMS
    changed = [seed for seed in range(STREAMS) if digest_of(seed) != frozen[seed]]
    assert changed == []
