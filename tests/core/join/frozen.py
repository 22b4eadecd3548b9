"""What the naive join says of streams drawn by chance, as digests: a change of the oracle is seen.

    python -m tests.core.join.frozen --write

A join that worked on one object for each event agreed with this oracle, and is gone since.
"""

from __future__ import annotations

import json
import sys
from hashlib import blake2b
from pathlib import Path
from random import Random

from tests.core.join.naive_join import NaiveJoin
from tests.core.join.naive_reports import naive_activity, naive_alive
from tests.core.join.streams import a_case
from tests.core.join.test_join_model import naive_counted

FILE = Path(__file__).parents[2] / "golden" / "join_streams.json"
STREAMS = 250
NOT_FROZEN = ("topic", "label_topic")
"""Facts about a model that the oracle has reported since then."""


def digest_of(seed: int) -> str:
    """Outcomes, counters, entries and activity of one stream, under settings of its own."""
    spec, events, start_ms = a_case(Random(seed))
    naive = NaiveJoin(spec, start_ms)
    for event in events:
        naive.feed(event)
    counts = sorted((repr(name), count) for name, count in naive_counted(naive).items() if count)
    activity = {
        model: {name: value for name, value in each.items() if name not in NOT_FROZEN}
        for model, each in naive_activity(naive).items()
    }
    results = (spec, naive.outcomes, naive.retired, counts, naive_alive(naive), activity)
    return blake2b(repr(results).encode(), digest_size=8).hexdigest()


if __name__ == "__main__" and "--write" in sys.argv:
    FILE.write_text(json.dumps([digest_of(seed) for seed in range(STREAMS)], indent=0) + "\n")
