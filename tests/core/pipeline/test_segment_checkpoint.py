"""Estimates by segment through commits and restarts: from waiting predictions, the journal and snapshots."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streamwatch.core.estimators.registers.segments import SegmentsSpec
from tests.core.pipeline.test_checkpoint import JOIN, SPEC, Life, label_for_all, predict

SEGMENTED = replace(SPEC, registers=(SegmentsSpec(max_classes=SPEC.max_classes),))


def lived(*, restarts: int, commits: int, journal: int) -> Life:
    """Predictions of two countries, each labelled five later; a commit every so often, and a restart."""
    life = Life(spec=SEGMENTED, join=JOIN, journal=journal)
    for i in range(120):
        event = predict(str(i), "x" if i % 3 else "y", i)
        life.feed(msgspec.structs.replace(event, segments={"country": "de" if i % 4 else "fr"}))
        if i >= 5:
            life.feed(label_for_all(str(i - 5), "x", i))
        if i % commits == 0:
            life.commit()
            if restarts and i % restarts == 0:
                life = life.restarted()
    life.commit()
    return life


@pytest.mark.slow
@pytest.mark.parametrize("journal", [5, 1_000], ids=["by snapshots", "by the journal"])
def test_a_restarted_run_has_the_segments_of_the_undisturbed_one(journal: int) -> None:
    undisturbed = lived(restarts=0, commits=10, journal=journal)
    killed = lived(restarts=20, commits=10, journal=journal)
    assert killed.canonical() == undisturbed.canonical()
    counted = {
        key[2]: value
        for family in killed.monitors.families()
        if family.name == "segment_outcomes_total"
        for key, value in family.samples
    }
    french = sum(1 for i in range(115) if i % 4 == 0)
    assert counted == {"de": 115 - french, "fr": french}
