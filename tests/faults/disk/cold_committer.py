"""A program that commits a join with cold entries until it is killed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.faults.committed import Committing


def commit_until_killed(directory: Path, ids: int, last: int) -> None:
    """Commit up to number `last`; says of each that is durable how long the logs were by then."""
    for commit in Committing(directory, ids).until(last):
        logs = {path.name: path.stat().st_size for path in directory.glob("*.log")}
        os.write(1, f"{json.dumps([commit, logs])}\n".encode())
