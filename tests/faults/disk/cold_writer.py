"""A program that takes steps with cold entries on disk, until it is killed.

It says `durable <n>` after each commit.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from tests.edge.stores.rocksdb.cold_steps import OnDisk


class Saying(OnDisk):
    """Says what is durable."""

    def commit_to_store(self, changes):
        super().commit_to_store(changes)
        os.write(1, f"durable {self.commits}\n".encode())


def take_steps(directory: Path, seed: int) -> None:
    """Take those of this seed, without an end."""
    steps = Saying(Random(seed), directory)
    while True:
        steps.walk(1, checked=False)
