"""A replay of lines that a test writes."""

from __future__ import annotations

import json

import pytest

from streamwatch.history.replay.replay import ReplaySpec, replay


@pytest.fixture
def played(tmp_path):
    """Replay lines (text) under a name; the result, and where its trace is."""

    def play(content, name="events.jsonl", *, trace=False, **options):
        path = tmp_path / name
        path.write_text(
            content if isinstance(content, str) else "".join(json.dumps(e) + "\n" for e in content)
        )
        target = tmp_path / "trace.csv" if trace else None
        return replay(ReplaySpec([path], trace=target, **options)), target

    return play
