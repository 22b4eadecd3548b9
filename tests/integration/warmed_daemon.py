"""Imported by a server of forks: all that a daemon imports, and what it compiles with default settings."""

from __future__ import annotations

import streamwatch.assembly.build
import streamwatch.cli.run
import streamwatch.edge.stores.rocksdb  # noqa: F401 - imported by a daemon when it opens its state
from streamwatch.assembly.warming import warm_up_run
from streamwatch.edge.sources.kafka.batches.opened import compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.settings import Settings

warm_up_run(
    Settings(kafka={"bootstrap_servers": "127.0.0.1:1"}, topics={"predictions": ["p"], "labels": ["l"]})
)
compiled_scan()
compiled_plain_batches()
