"""A state whose publications cannot be read is refused at its opening, not when they are to be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamwatch.assembly.publishing import publication_log
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.ports import RecoveredState
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.settings import Settings


@pytest.mark.parametrize("written", [b"\xc1", b"", b"\x81\xa1\xff\x01", b"\x91" * 10_000])
def test_a_publication_that_cannot_be_read_refuses_the_state(written: bytes, tmp_path: Path) -> None:
    settings = Settings(
        kafka={"bootstrap_servers": "b:1"},  # type: ignore[arg-type]
        topics={"predictions": "predictions", "labels": "labels"},  # type: ignore[arg-type]
        outcomes={"topic": "outcomes"},  # type: ignore[arg-type]
        state={"directory": str(tmp_path)},  # type: ignore[arg-type]
    )
    saved = RecoveredState(commits=7, publications={7: written})
    shown = f"the state in {tmp_path} is damaged: a publication in the state cannot be read"
    with pytest.raises(StateDamaged, match=shown):
        publication_log(settings, "life", saved, EstimatorSet(MonitorsSpec()))
