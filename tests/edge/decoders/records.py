"""Records as Kafka would deliver them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

AT_MS = 1_700_000_000_123


@dataclass(frozen=True)
class FakeRecord:
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str = "predictions"
    partition: int = 3
    offset: int = 42
    timestamp: int = AT_MS
    fault: str | None = None
    timestamp_type: int = 0


def of(content: Any, **fields: Any) -> FakeRecord:
    return FakeRecord(json.dumps(content).encode(), **fields)
