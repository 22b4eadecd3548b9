"""The book of alarms that tests of a room begin with."""

from __future__ import annotations

import pytest

from tests.core.alerting.told import Told


@pytest.fixture
def told() -> Told:
    return Told()
