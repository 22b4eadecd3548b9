"""Rules for which alarms are notified, and with which severity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from streamwatch.core.alerting.notification import Severity
from streamwatch.core.specs import DAY_MS

EARLY_HINT: Final = "early_hint"
"""Name under which rules are about hints from predictions, as they are about a detector's alarms."""
COMPARISON: Final = "comparison"
"""Name under which rules are about verdicts on challengers."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """Rule for alarms of the models and detectors that match."""

    detector: str = "*"
    """Name, or a pattern with * ? [abc]."""
    model: str = "*"
    """Name, or a pattern."""
    severity: Severity = "warning"
    cooldown_ms: int = 600_000
    """Event time around an announced alarm in which no other of its (model, detector) is announced."""
    min_outcomes: int = 100
    """Outcomes a model must have had before its alarms are announced."""
    severity_given: bool = False
    """Whether somebody chose the severity for these models; then it holds whatever the classes are."""

    def severity_of(self, *, judged: bool, misleads: bool) -> Severity:
        """Severity of an alarm.

        Parameters
        ----------
        judged
            Whether it is of a verdict.
        misleads
            Whether the model is judged by accuracy although accuracy misleads; a verdict is then notified as
            information, unless a severity was chosen for the model.
        """
        return "info" if judged and misleads and not self.severity_given else self.severity

    def matches(self, model: str, detector: str) -> bool:
        """Tell whether a rule is about a model and detector; patterns distinguish upper and lower case."""
        return fnmatchcase(model, self.model) and fnmatchcase(detector, self.detector)


@dataclass(frozen=True, slots=True)
class FleetDigestSpec:
    """Digests of the models that are worse by the fleet's rule."""

    every_ms: int = DAY_MS
    """Host time between two; they are at its multiples since 1970."""
    size: int = 20
    """Pairs listed, added and left that are named; all are counted."""
    send_empty: bool = False
    """Whether a digest is sent if nothing is listed and nothing has left."""


@dataclass(frozen=True, slots=True)
class AlarmsSpec:
    """The life of an alarm. Durations in milliseconds."""

    rules: tuple[AlarmRule, ...] = ()
    """The first that matches holds."""
    otherwise: AlarmRule = AlarmRule()
    """Rule where none matches."""
    resolve_timeout_ms: int = DAY_MS
    """Host time after the newest alarm when what it found is taken for the new level."""
    stale_after_ms: int = 3_600_000
    """Alarms found while catching up are notified one by one if they are not older than this."""
    digest_interval_ms: int = 600_000
    """While catching up goes on, a digest leaves this long after the first alarm in it."""
    incident_outcomes: int = 2_500
    """Outcomes within which alarms of one model are of one change; chosen by `docs/evidence/incidents.md`."""
    digest_size: int = 20
    """Alarms, and pairs of model and detector, listed in a digest; all are counted."""
    retraining_after_ms: int | None = None
    """Host time since a verdict that a model is worse, after which its retraining is announced as due; None:
    never."""
    fleet_digest: FleetDigestSpec | None = None
    """Digests of the models that are worse; None: nobody wants them."""
    model_severities: tuple[tuple[str, Severity], ...] = ()
    """Patterns of models, and the severity of their alarms where no rule chooses one; the first that matches
    holds."""

    def rule(self, model: str, detector: str) -> AlarmRule:
        """Find the rule for alarms of a model's detector."""
        found = next((rule for rule in self.rules if rule.matches(model, detector)), self.otherwise)
        if found.severity_given:
            return found
        chosen = (severity for name, severity in self.model_severities if fnmatchcase(model, name))
        severity = next(chosen, None)
        return found if severity is None else replace(found, severity=severity, severity_given=True)
