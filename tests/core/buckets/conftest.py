"""Both forms of buckets, for whoever asks for one."""

from __future__ import annotations

import pytest

from tests.core.buckets.cluster import COLUMNS, ROWS


@pytest.fixture(params=[ROWS, COLUMNS], ids=["rows", "columns"])
def form(request):
    return request.param
