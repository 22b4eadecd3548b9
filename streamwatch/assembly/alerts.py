"""From the `alerts` section to the book of alarms and the deliveries of notifications."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from streamwatch.assembly.receivers import build_receivers
from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.rules import EARLY_HINT, AlarmRule, AlarmsSpec
from streamwatch.core.events import VERDICT
from streamwatch.daemon.deliveries.deliveries import Deliveries
from streamwatch.daemon.deliveries.receiver_queue import DeliverySpec
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry


def alarms_spec(settings: Settings) -> AlarmsSpec:
    """Rules for the alarms that are told.

    Raises
    ------
    SettingsError
        A rule is about no configured detector.
    """
    alerts = settings.alerts
    otherwise = AlarmRule("*", "*", alerts.severity, alerts.cooldown, alerts.min_outcomes)
    detectors = [*(detector.name for detector in settings.monitors.detectors), VERDICT]
    if notifies_of_hints(settings):
        detectors.append(EARLY_HINT)
    rules: list[AlarmRule] = []
    for index, rule in enumerate(alerts.rules):
        if not any(fnmatchcase(name, rule.detector) for name in detectors):
            raise SettingsError(
                f"alerts.rules[{index}].detector: expected a pattern of {', '.join(detectors)}, "
                f"got {rule.detector!r}"
            )
        said = {
            "severity": rule.severity,
            "cooldown_ms": rule.cooldown,
            "min_outcomes": rule.min_outcomes,
        }
        given = {key: value for key, value in said.items() if value is not None}
        chosen = rule.severity is not None
        rules.append(
            replace(otherwise, detector=rule.detector, model=rule.model, severity_given=chosen, **given)
        )
    return AlarmsSpec(
        rules=tuple(rules),
        otherwise=otherwise,
        resolve_timeout_ms=alerts.resolve_timeout,
        stale_after_ms=alerts.stale_after,
        digest_interval_ms=alerts.digest_interval,
        digest_size=alerts.digest_size,
        incident_outcomes=alerts.incident_outcomes,
    )


def notifies_of_hints(settings: Settings) -> bool:
    """Tell whether receivers are told of early hints."""
    hints = settings.monitors.early_hints
    return hints is not None and hints.notify


def build_alarm_book(settings: Settings, identity: str) -> AlarmBook:
    """The book of alarms of a state; `identity` is the store's."""
    return AlarmBook(alarms_spec(settings), identity)


def build_deliveries(settings: Settings, telemetry: Telemetry) -> Deliveries:
    """Receivers and what delivers to them; raises SettingsError as `build_receivers`."""
    alerts = settings.alerts
    spec = DeliverySpec(give_up_after_ms=alerts.give_up_after, max_pending=alerts.max_pending)
    return Deliveries(build_receivers(settings), spec, telemetry.emit)
