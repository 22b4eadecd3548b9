"""A real Prometheus with the rules that are deployed, scraping and evaluating once a second."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.deploy.rules import RULE_FILES
from tests.integration.prometheus_server import Prometheus, prometheus


def prometheus_with_rules(
    program: str, target: str, directory: Path, alertmanager: str | None = None
) -> AbstractAsyncContextManager[Prometheus]:
    """Start it on a free port, wait until it answers, end it; `alertmanager` is whom it notifies."""
    return prometheus(program, target, directory, RULE_FILES, alertmanager)
