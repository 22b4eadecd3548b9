"""The broker that the daemon reads from where a test runs all that is deployed."""

from __future__ import annotations

from tests.integration.conftest import killable_kafka, own_kafka

__all__ = ["killable_kafka", "own_kafka"]
