"""Series of the brokers, and of what was lost of their logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch.core.metrics import family, single
from streamwatch.core.ports import DataLossCounters
from streamwatch.core.series import Family


def source_families(counts: DataLossCounters | None, *, up: bool) -> Sequence[Family]:
    """Series of the source.

    Parameters
    ----------
    counts
        None before state is open: then there are no samples of them, as a scrape must not see 0 where the run
        before had counted.
    up
        Whether the brokers answer.
    """
    return [
        single("kafka_up", float(up)),
        _by_cause("kafka_data_loss_total", {} if counts is None else counts.losses),
        _by_cause("kafka_records_lost_total", {} if counts is None else counts.records_lost),
        single(
            "kafka_position_unverified_total", None if counts is None else float(counts.position_unverified)
        ),
    ]


def _by_cause(name: str, counts: Mapping[str, int]) -> Family:
    return family(name, [((cause,), float(n)) for cause, n in sorted(counts.items())])
