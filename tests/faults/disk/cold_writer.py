"""A process that takes steps with cold entries on disk, until it is killed.

    python -m tests.faults.disk.cold_writer <directory> <seed>

Says `durable <n>` after each commit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from tests.edge.stores.rocksdb.cold_steps import OnDisk


class Saying(OnDisk):
    """Says what is durable."""

    def commit_to_store(self, changes):
        super().commit_to_store(changes)
        sys.stdout.write(f"durable {self.commits}\n")
        sys.stdout.flush()


def main() -> None:
    directory, seed = sys.argv[1:]
    steps = Saying(Random(int(seed)), Path(directory))
    while True:
        steps.walk(1, checked=False)


if __name__ == "__main__":
    main()
