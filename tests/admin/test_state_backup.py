"""A backup is requested from the process that has the state open, and from no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamwatch.admin import state_transfer
from streamwatch.admin.state_transfer import back_up
from streamwatch.edge.stores.kind import StateRefused


@pytest.mark.parametrize("process", [0, -1])
def test_a_process_without_a_number_here_is_not_signalled(
    process: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled: list[tuple[int, int]] = []
    monkeypatch.setattr(state_transfer, "holder", lambda _directory: process)
    monkeypatch.setattr(os, "kill", lambda *given: signalled.append(given))
    with pytest.raises(StateRefused, match="run this in its container"):
        back_up(tmp_path, tmp_path, 0.0)
    assert signalled == []
