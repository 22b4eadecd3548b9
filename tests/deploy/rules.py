"""The alerting and recording rules as read from their files, and the names they use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from streamwatch.core.alerting.notification import SEVERITIES
from streamwatch.core.metrics.series import PREFIX, exposed
from tests.contracts.families import every_family
from tests.deploy.repository import documents

DEPLOY = Path(__file__).parents[2] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
RULE_FILES = sorted((PROMETHEUS / "rules").glob("*.yml"))
TEST_FILES = sorted((PROMETHEUS / "tests").glob("*.test.yml"))

_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_RENDERED = ("_bucket", "_count", "_sum")


def rules() -> list[dict[str, Any]]:
    """Every rule of every group."""
    return [rule for file in RULE_FILES for group in _document(file)["groups"] for rule in group["rules"]]


@cache
def _document(file: Path) -> dict[str, Any]:
    """What a file says, read once: most tests and the names of many ask for it."""
    (read,) = documents(file)
    return read


def alerts() -> dict[str, dict[str, Any]]:
    """Alerting rules by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def severities(name: str) -> tuple[str, ...]:
    """What an alert can be: what its rule says, or anything that its series' own label says."""
    severity = alerts()[name]["labels"]["severity"]
    if severity == "{{ $labels.severity }}":
        return SEVERITIES
    chosen = re.fullmatch(r"{{ with \$labels.severity }}{{ \. }}{{ else }}(\w+){{ end }}", severity)
    return (severity,) if chosen is None else (chosen[1], *(each for each in SEVERITIES if each != chosen[1]))


def recorded() -> set[str]:
    """Names of the recording rules."""
    return {rule["record"] for rule in rules() if "record" in rule}


def unit_tests() -> Iterator[dict[str, Any]]:
    """Every test of every file of promtool's."""
    for file in TEST_FILES:
        yield from _document(file)["tests"]


def exported() -> set[str]:
    """Every name a scrape of the daemon can hold."""
    names = set[str]()
    for family in every_family():
        suffixes = _RENDERED if family.kind == "histogram" else ("",)
        names |= {exposed(family.name) + suffix for suffix in suffixes}
    return names


def names_in(expr: str) -> set[str]:
    """The metrics of this project that an expression asks for, recorded ones included."""
    return {name for name in _NAME.findall(_QUOTED.sub('""', expr)) if PREFIX in name}


def unknown_names(expr: str) -> set[str]:
    """Those that nothing emits and nothing records."""
    return names_in(expr) - exported() - recorded()


def held_drifts() -> str:
    """Return the expression of the rule that DriftAlarm reads, which joins open alarms with their models."""
    (held,) = recorded() & names_in(alerts()["DriftAlarm"]["expr"])
    (expr,) = [rule["expr"] for rule in rules() if rule.get("record") == held]
    return expr


def open_alarms() -> str:
    """Return the metric of which DriftAlarm tells."""
    beside = {"streamwatch_model_info", "streamwatch_standby_role"} | recorded()
    (opened,) = names_in(held_drifts()) - beside
    return opened
