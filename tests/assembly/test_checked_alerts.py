"""`check` says what `run` refuses: rules about no detector, receivers that wait for nothing, a wrong key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trustme

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


@pytest.mark.parametrize("fits", [True, False])
async def test_a_key_that_does_not_fit_the_certificate_is_a_fault(tmp_path: Path, *, fits: bool) -> None:
    authority = trustme.CA()
    own, other = (authority.issue_cert("localhost") for _ in range(2))
    own.cert_chain_pems[0].write_to_path(tmp_path / "own.pem")
    (own if fits else other).private_key_pem.write_to_path(tmp_path / "key.pem")
    tls = {"certificate_file": str(tmp_path / "own.pem"), "key_file": str(tmp_path / "key.pem")}
    found = await check_all(Settings.model_validate({**DOCUMENT, "http": {"tls": tls}}))
    shown = [each.what for each in found if each.what.startswith("cannot serve HTTPS with certificate")]
    assert len(shown) == (0 if fits else 1)
