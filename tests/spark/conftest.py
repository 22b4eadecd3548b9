"""Fixtures of the job's tests: Apache Kafka, which has transactions, and Spark where it is installed."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tests.integration.conftest import kafka, own_kafka

__all__ = ["kafka", "own_kafka"]


@pytest.fixture
def spark_installed() -> None:
    """Leave the test out where Spark is not installed; `make test-spark` has it, and requires it."""
    if importlib.util.find_spec("pyspark") is None:
        if os.environ.get("STREAMWATCH_REQUIRE_SPARK") == "1":
            pytest.fail("needs the extra `spark`", pytrace=False)
        pytest.skip("needs the extra `spark`: make test-spark")
