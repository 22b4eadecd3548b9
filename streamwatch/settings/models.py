"""`models`: labels of models by pattern, for notifications, metrics, page and API."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field, field_validator

from streamwatch.settings.alerts import SeverityName
from streamwatch.settings.sections import Section
from streamwatch.settings.values import link

RESERVED: Final = frozenset(
    (
        "alertname",
        "challenger",
        "champion",
        "class",
        "detector",
        "fold",
        "forgetting",
        "instance",
        "job",
        "label_topic",
        "le",
        "model",
        "opponent",
        "receiver",
        "runbook_url",
        "segment",
        "service",
        "severity",
        "subject",
        "topic",
        "value",
    )
)
"""Names of labels that series and alerts already have."""
_MOST_BYTES: Final = 128


class ModelRuleSection(Section):
    """Labels of the models whose names match a pattern."""

    model: Annotated[str, Field(min_length=1)] = "*"
    """Name of a model, or a pattern with * and ?."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    """Labels by name: {team: payments}."""
    severity: SeverityName | None = None
    """Severity of the models' alarms where no rule of `alerts.rules` sets one: info, warning, error or
    critical."""
    runbook_url: Annotated[str | None, link("https://wiki.example.com/models")] = None
    """URL of a page that says what to do if one of the models gets worse."""

    @field_validator("labels")
    @classmethod
    def _names(cls, labels: dict[str, str]) -> dict[str, str]:
        for name, value in labels.items():
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or name.startswith("__"):
                raise ValueError(
                    f"expected label names of letters, digits and _ that do not begin with __, got {name!r}"
                )
            if name in RESERVED:
                raise ValueError(f"label {name!r} is reserved: series or alerts have one of this name")
            if not value or len(value.encode()) > _MOST_BYTES or not value.isprintable():
                raise ValueError(
                    f"expected 1 to {_MOST_BYTES} bytes of printable text for label {name!r}, got {value!r}"
                )
        return labels


class ModelsSection(Section):
    """Labels of models: who owns them, how bad their alarms are, and what to do."""

    rules: tuple[ModelRuleSection, ...] = ()
    """Rules by pattern: {model: fraud-*, labels: {team: payments}, severity: critical, runbook_url: …}. Of
    several that match, the first that sets a label, the severity or the runbook applies. They are in
    notifications, in the metric model_info, on page and API."""
