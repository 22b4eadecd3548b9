"""The real parts that faults are injected into, as the integration tests have them."""

from __future__ import annotations

from tests.integration.conftest import kafka, own_kafka

__all__ = ["kafka", "own_kafka"]
