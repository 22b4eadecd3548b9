"""A process that commits a join with cold entries until it is killed; importing this compiles what it needs.

A server that has imported it forks such processes: none of them has to be started, or to load anything.
"""

from __future__ import annotations

import json
import os
from multiprocessing.connection import Connection
from pathlib import Path

from streamwatch.core.join.warming import warm_up_commits, warm_up_join, warm_up_overflow
from tests.faults.committed import COLD, Committing

warm_up_join()
warm_up_commits()
warm_up_overflow()


def commit_until_killed(directory: Path, ids: int, last: int, told: Connection) -> None:
    """Commit up to number `last`; tells each that is durable, and how long the logs were by then."""
    os.environ[COLD] = "1"
    for commit in Committing(directory, ids).until(last):
        logs = {path.name: path.stat().st_size for path in directory.glob("*.log")}
        told.send_bytes(json.dumps([commit, logs]).encode())
    os._exit(0)
