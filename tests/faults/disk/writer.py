"""A program that commits to a state directory, whatever the disk does, and says what it was told.

It says `found N` when state is open, `durable N` when a commit is, `failed …` when the disk did: then it
drops what is in memory and opens state again, as the daemon does. `ended` comes after commit number LAST,
`stuck` where nothing was durable over MOST_FAILURES openings: a disk may fail at the same place for ever.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from streamwatch.edge.stores.kind import StateFailed
from tests.faults.committed import Committing

RETRY_SECONDS = 0.01
MOST_FAILURES = 50
"""One after another."""


def say(*words: object) -> None:
    """Not by `write`, which tests let fail."""
    os.writev(1, [(" ".join(map(str, words)).replace("\n", " ") + "\n").encode()])


def write(directory: Path, last: int, ids: int, flush: bool) -> None:  # noqa: FBT001 - of a process
    """Commit up to number `last`; without `flush` nothing is made durable, whatever it says."""
    failures = 0
    while failures < MOST_FAILURES:
        committing = None
        try:
            committing = Committing(directory, ids)
            say("found", committing.commits)
            if not flush:
                committing.store.flush = lambda: None
            for number in committing.until(last):
                say("durable", number)
                failures = 0
        except StateFailed as error:
            say("failed", error)
            failures += 1
            if committing is not None:
                committing.store.close()
            time.sleep(RETRY_SECONDS)
        else:
            say("ended")
            return
    say("stuck")
