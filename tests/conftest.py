"""Policy on real components: see `tests/real.py`; and how long an example may take is nobody's matter."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from tests import real

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.real("promtool", "chromium")`: leave the test out where one of them is missing."""
    for marker in item.iter_markers("real"):
        for component in marker.args:
            real.need(item.nodeid, component)


@pytest.fixture
def real_component(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`real_component("promtool")` is the program's path, or leaves the test out."""
    return lambda name: real.program(request, name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for title, tests in (
        ("left out: a real component is missing on this machine", real.left_out),
        ("ran on the embedded broker instead of Apache Kafka", real.on_the_embedded_broker),
    ):
        if tests:
            terminalreporter.section(title)
            for test, reason in sorted(tests.items()):
                terminalreporter.line(f"{test}  ({reason})")
