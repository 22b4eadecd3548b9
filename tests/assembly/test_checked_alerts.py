"""`check` says what `run` refuses of alerts: rules about no detector, receivers that wait for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.assembly.checks import check_all
from streamwatch.settings import Settings
from tests.assembly.lives import DOCUMENT

RECEIVER = {"name": "team", "type": "slack", "url": "http://127.0.0.1:9/"}


@pytest.mark.parametrize(
    ("alerts", "shown"),
    [
        ({"rules": [{"detector": "nonsense"}]}, "alerts.rules[0].detector: expected a pattern of"),
        (
            {"receivers": [{**RECEIVER, "events": ["comparisons"]}]},
            "alerts.receivers[0].events: comparisons needs monitors.comparisons",
        ),
        (
            {"receivers": [{**RECEIVER, "url": "ftp://somewhere"}]},
            "alerts.receivers[0].url: expected http://",
        ),
    ],
)
async def test_what_run_refuses_of_alerts_is_a_fault(alerts: dict[str, Any], shown: str) -> None:
    (found,) = await check_all(Settings.model_validate({**DOCUMENT, "alerts": alerts}))
    assert not found.good
    assert shown in found.what
