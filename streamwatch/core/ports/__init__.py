"""Protocols between the core and the outside: records, decoders, schemas, sources, stores, sinks.

The core is handed objects of these shapes and never imports an implementation.
"""

from __future__ import annotations

from streamwatch.core.ports.destinations import DeadLetters, Sink
from streamwatch.core.ports.records import Decoder, NeededSchemas, Record, Schemas
from streamwatch.core.ports.source import DataLossCounters, PartitionState, Poll, Source
from streamwatch.core.ports.store import Store

__all__ = [
    "DataLossCounters",
    "DeadLetters",
    "Decoder",
    "NeededSchemas",
    "PartitionState",
    "Poll",
    "Record",
    "Schemas",
    "Sink",
    "Source",
    "Store",
]
