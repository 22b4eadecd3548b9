"""The naive join, which all others are compared with, gives what it gave when it was frozen."""

from __future__ import annotations

import json

from tests.core.join.frozen import FILE, STREAMS, digest_of


def test_the_oracle_has_the_frozen_results_of_every_stream() -> None:
    frozen = json.loads(FILE.read_text())
    assert len(frozen) == STREAMS
    changed = [seed for seed in range(STREAMS) if digest_of(seed) != frozen[seed]]
    assert changed == []
