"""Imported by a server of forks: calls in memory what their programs call, so that no fork loads it anew.

No database is opened: its threads would be missing in a fork.
"""

from __future__ import annotations

from random import Random

from streamwatch.core.join.warming import warm_up_commits, warm_up_join, warm_up_overflow
from streamwatch.edge.keys import digest_bytes
from tests.core.join.cold.cold_streams import ColdJoined
from tests.core.join.durable_streams import cramped_logs
from tests.core.join.join_stream import clocked, tick
from tests.edge.stores.rocksdb.cold_steps import Undisturbed
from tests.faults.committed import COMMIT_MS, JOIN, stories
from tests.faults.disk import cold_committer, cold_writer, writer

PROGRAMS = (cold_committer, cold_writer, writer)
warm_up_join()
warm_up_commits()
warm_up_overflow()
Undisturbed(Random(1)).until(20)

_columns = ColdJoined(JOIN, digest_bytes, None, Random(1))
for _commit in range(1, 9):
    _now = _commit * COMMIT_MS
    _columns.feed(clocked([*stories(_commit, 60, _now), tick(_now)], _columns.pipeline.clock_ms))
    _columns.keep_up()
    with cramped_logs():
        _columns.commit()
    _columns.restart()
