"""What a commit says of results: which batch was told of last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.results import DataLoss

RESULTS: Final = "results"
"""The section of a commit that says which batch was told of last."""


class LastReportedBatch(msgspec.Struct, frozen=True, array_like=True):
    """The last batch that was told of."""

    life: str = ""
    """Name of the state of the job that wrote it; empty before the first."""
    batch: int = 0
    data_loss: DataLoss = DataLoss()
    """What was missing of the job's topics up to there."""


_TOLD: Final = msgspec.msgpack.Decoder(LastReportedBatch)


def told_of(section: bytes | None) -> LastReportedBatch:
    """Read the section of a commit; raises msgspec.DecodeError if it is none."""
    return LastReportedBatch() if section is None else _TOLD.decode(section)


@dataclass(slots=True)
class ResultsCheckpoint:
    """Content of a commit of results: implements `Checkpointing`.

    Parameters
    ----------
    told
        As of the last commit.
    commits
        Number of the last commit.
    """

    told: LastReportedBatch
    commits: int = 0

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit."""
        self.commits += 1
        own = {RESULTS: msgspec.msgpack.encode(self.told)}
        return CommitBatch({**own, **sections}, outbox=outbox or {})
