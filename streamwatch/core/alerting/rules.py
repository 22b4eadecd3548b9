"""Rules for which alarms are notified, and with which severity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from streamwatch.core.alerting.notification import Severity
from streamwatch.core.specs import DAY_MS

EARLY_HINT: Final = "early_hint"
"""Name of the detector by which rules apply to early hints."""
COMPARISON: Final = "comparison"
"""Name of the detector by which rules apply to verdicts on challengers."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """Rule for alarms of the models and detectors that match."""

    detector: str = "*"
    """Name, or a pattern with * ? [abc]."""
    model: str = "*"
    """Name, or a pattern."""
    severity: Severity = "warning"
    cooldown_ms: int = 600_000
    """Event time around an announced alarm in which no other of its model and detector is announced.

    A verdict that begins to alternate is announced all the same.
    """
    min_outcomes: int = 100
    """Number of outcomes that a model must have had before its alarms are announced.

    A verdict that still holds by then is announced then.
    """
    severity_given: bool = False
    """Whether settings choose the severity; then it also holds where accuracy misleads."""

    def severity_of(self, *, judged: bool, misleads: bool) -> Severity:
        """Severity of an alarm.

        Parameters
        ----------
        judged
            Whether the alarm is of a verdict.
        misleads
            Whether the model is judged by accuracy although accuracy misleads; a verdict is then notified as
            information, unless a severity was chosen for the model.
        """
        return "info" if judged and misleads and not self.severity_given else self.severity

    def matches(self, model: str, detector: str) -> bool:
        """Tell whether the rule applies to a model and detector; upper and lower case of patterns differ."""
        return fnmatchcase(model, self.model) and fnmatchcase(detector, self.detector)


@dataclass(frozen=True, slots=True)
class FleetDigestSpec:
    """Digests of the models that are worse by the fleet's rule."""

    every_ms: int = DAY_MS
    """Host time between two digests, which are made at its multiples since 1970."""
    size: int = 20
    """Most pairs named of those listed, of those added and of those that left; all are counted."""
    send_empty: bool = False
    """Whether a digest is sent if nothing is listed and nothing has left."""


@dataclass(frozen=True, slots=True)
class AlarmsSpec:
    """Rules for alarms, and durations in milliseconds after which they change state."""

    rules: tuple[AlarmRule, ...] = ()
    """Rules; the first that matches applies."""
    otherwise: AlarmRule = AlarmRule()
    """Rule where none matches."""
    resolve_timeout_ms: int = DAY_MS
    """Host time after the newest alarm, after which it is resolved and its error taken for the new level."""
    stale_after_ms: int = 3_600_000
    """Greatest age of an alarm found in a backlog at which it is notified by itself, not in a digest."""
    digest_interval_ms: int = 600_000
    """Host time from the first alarm in a digest until it is issued, if the backlog is still being read."""
    incident_outcomes: int = 2_500
    """Distance in outcomes up to which alarms of a model are of one change (`docs/evidence/incidents.md`)."""
    digest_size: int = 20
    """Most alarms, and most pairs of model and detector, listed in a digest; all are counted."""
    retraining_after_ms: int | None = None
    """Host time for which a model must have been worse until its retraining is announced; None: never."""
    fleet_digest: FleetDigestSpec | None = None
    """Digests of the models that are worse; None if no receiver wants them."""
    model_severities: tuple[tuple[str, Severity], ...] = ()
    """Patterns of models, and the severity of their alarms if no rule chooses one; the first that matches."""

    def rule(self, model: str, detector: str) -> AlarmRule:
        """Find the rule for alarms of a model's detector."""
        found = next((rule for rule in self.rules if rule.matches(model, detector)), self.otherwise)
        if found.severity_given:
            return found
        chosen = (severity for name, severity in self.model_severities if fnmatchcase(model, name))
        severity = next(chosen, None)
        return found if severity is None else replace(found, severity=severity, severity_given=True)
