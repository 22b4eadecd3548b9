"""What is tested of the join holds for both of them."""

from __future__ import annotations

import pytest

from tests.core.join.join_stream import Stream


@pytest.fixture(params=["row by row", "compiled"])
def either_join(request, monkeypatch):
    """Streams are joined row by row, then by the compiled loop."""
    monkeypatch.setattr(Stream, "compiled", request.param == "compiled")
