"""Whatever is written to the topics, health answers, memory is bounded and reading comes to what follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.reading import BATCHES, MEBIBYTE, read_hostile
from tests.integration.conftest import Broker
from tests.tiers import rotated

MEDIAN_SECONDS = 0.1
P99_SECONDS = 2.5
"""Beyond what a bare server took in the same moment: a stall of a batch takes ten seconds and more, a busy
machine up to one. `make attack` measures it closely."""
EXTRA_BYTES = 500 * MEBIBYTE


@pytest.mark.parametrize("name", rotated(list(BATCHES)))
async def test_health_answers_while_batches_of_any_kind_are_read(
    kafka: Broker, tmp_path: Path, name: str
) -> None:
    read = await read_hostile(kafka, tmp_path, BATCHES[name])
    assert read.health.unanswered == 0
    assert read.health.median < MEDIAN_SECONDS
    assert read.health.p99 < P99_SECONDS
    assert read.extra_bytes < EXTRA_BYTES
    assert sum(read.counted.values()) == read.written
    assert read.counted["predictions_accepted_total"] >= 2
    assert not [line for line in read.lines if "Traceback" in line]
