"""Whatever clients do, health answers, memory is bounded and the log stays readable."""

from __future__ import annotations

import pytest

from tests.attack.http import ATTACKS
from tests.attack.siege import rounds, siege

MODELS = 2_000
HEALTH_SECONDS = 0.1
"""Beyond what a bare server beside it took in the same moment, in the median."""
EXTRA_BYTES = 400_000_000
"""Texts of 68,000 series, a rendering, and what is under way (`HttpLimits.buffered_bytes`): 220 to 320 MB."""
"""A rendering, and the bytes under way."""
REASONS = 10
"""Kinds of lines there are; each is written once a minute."""


@pytest.mark.parametrize("name", ATTACKS)
async def test_health_answers_memory_is_bounded_and_the_log_stays_readable(name: str) -> None:
    attack, size = ATTACKS[name]
    async with siege("--models", str(MODELS)) as besieged:
        before = besieged.resident_bytes
        await attack(besieged, size if name in {"half_sent", "not_reading"} else size // 3 or 1)
        await rounds(besieged, 3)
        health = besieged.health()
        assert health.unanswered == 0
        assert health.median < HEALTH_SECONDS
        assert besieged.peak_bytes - before < EXTRA_BYTES
        assert len(besieged.lines) <= REASONS, besieged.lines[:20]
        assert not [line for line in besieged.lines if "Traceback" in line]
