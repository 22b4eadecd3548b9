"""Alarm book, receivers and deliveries, built from the `alerts` section; test notifications."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

import msgspec
from yarl import URL

from streamwatch.assembly.specs import checked_authorities
from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import (
    IncidentAlarm,
    Kind,
    Notification,
    NotifiedFleet,
    NotifiedHint,
    RivalPair,
    identify,
)
from streamwatch.core.alerting.outbox import Delivered, Receiver, check_entries
from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.core.alerting.rules import (
    COMPARISON,
    EARLY_HINT,
    AlarmRule,
    AlarmsSpec,
    FleetDigestSpec,
    ModelLabels,
    ModelRule,
    TopicsOfRun,
)
from streamwatch.core.estimators.registers.fleet import SHARE, WorsePair
from streamwatch.core.join.models import ModelActivity
from streamwatch.core.ports import RecoveredState
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import VERDICT, Alarm, Judgement
from streamwatch.core.specs import DAY_MS
from streamwatch.daemon.alerting import ALARMS, PACING, WatchedFleet
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.daemon.status import host_ms
from streamwatch.edge.outgoing import refused
from streamwatch.edge.receivers import KINDS, EndpointSpec, ReceiverKind, ReceiverOptions
from streamwatch.edge.receivers.http import HttpReceiver, meaning
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.alerts import ReceiverSection, UnusableSecretError
from streamwatch.telemetry import Telemetry


def build_receivers(settings: Settings) -> list[HttpReceiver]:
    """Build every configured receiver; reads secrets from their files.

    Raises
    ------
    SettingsError
        If a URL or a secret cannot be used; the text shows neither.
    """
    external_url = settings.alerts.external_url or ""
    return [_receiver(section, i, external_url) for i, section in enumerate(settings.alerts.receivers)]


def _receiver(section: ReceiverSection, index: int, external_url: str) -> HttpReceiver:
    path = f"alerts.receivers[{index}]"
    kind = KINDS.get(section.type)
    if kind is None:
        raise SettingsError(f"{path}.type: expected one of {', '.join(KINDS)}, got {section.type!r}")
    spec = EndpointSpec(
        name=section.name,
        url=_url(section, kind, path),
        timeout_seconds=section.timeout / 1000,
        severities=None if section.severities is None else frozenset(section.severities),
        matchers=section.matchers,
        alarms="alarms" in section.events,
        retraining="retraining" in section.events,
        comparisons="comparisons" in section.events,
        digest="digest" in section.events,
        ca_file=checked_authorities(section.ca_file, f"{path}.ca_file"),
    )
    try:
        own = {key.name: section.read_own(key) for key in kind.keys}
    except UnusableSecretError as error:
        raise SettingsError(f"{path}.{error}") from None
    return HttpReceiver(*kind.configure(spec, ReceiverOptions(external_url, own)))


def _url(section: ReceiverSection, kind: ReceiverKind, path: str) -> str:
    text = section.read_url() or kind.default_url
    key = "url_file" if section.url_file else "url"
    try:
        url = URL(text)
        good = url.scheme in {"http", "https"} and bool(url.host) and bool(url.port)
    except ValueError:
        good = False
    if not good:
        raise SettingsError(f"{path}.{key}: expected http://… or https://… with a host (not shown)")
    if refused(URL(text).host or ""):
        raise SettingsError(
            f"{path}.{key}: {URL(text).host} is a link-local address, which is never spoken to"
        )
    return text


def alarms_spec(settings: Settings) -> AlarmsSpec:
    """Build the rules that decide which alarms receivers are notified of.

    Raises
    ------
    SettingsError
        If a rule matches no configured detector, or a receiver asks for comparisons or digests that the
        settings do not produce.
    """
    alerts = settings.alerts
    for index, receiver in enumerate(alerts.receivers):
        if "comparisons" in receiver.events and not settings.monitors.comparisons:
            raise SettingsError(
                f"alerts.receivers[{index}].events: comparisons needs monitors.comparisons, which says which "
                "models are compared"
            )
        if "digest" not in receiver.events:
            continue
        if not settings.monitors.cohort_verdicts:
            raise SettingsError(
                f"alerts.receivers[{index}].events: digest needs monitors.cohort_verdicts, whose evidence "
                "decides which models are listed"
            )
        if settings.join.order == "prediction_time":
            raise SettingsError(
                f"alerts.receivers[{index}].events: digest needs join.order: resolution, as models are not "
                "judged by cohorts in the order of predictions"
            )
    otherwise = AlarmRule("*", "*", alerts.severity, alerts.cooldown, alerts.min_outcomes)
    detectors = [*(detector.name for detector in settings.monitors.detectors), VERDICT]
    if notifies_of_hints(settings):
        detectors.append(EARLY_HINT)
    if notifies_of_comparisons(settings):
        detectors.append(COMPARISON)
    rules: list[AlarmRule] = []
    for index, rule in enumerate(alerts.rules):
        if not any(fnmatchcase(name, rule.detector) for name in detectors):
            raise SettingsError(
                f"alerts.rules[{index}].detector: expected a pattern of {', '.join(detectors)}, "
                f"got {rule.detector!r}"
            )
        named = {
            "severity": rule.severity,
            "cooldown_ms": rule.cooldown,
            "min_outcomes": rule.min_outcomes,
        }
        given = {key: value for key, value in named.items() if value is not None}
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
        retraining_after_ms=alerts.retraining_after,
        fleet_digest=FleetDigestSpec(alerts.digest.every, alerts.digest_size, alerts.digest.send_empty)
        if any("digest" in receiver.events for receiver in alerts.receivers)
        else None,
        model_severities=tuple(
            (rule.model, rule.severity) for rule in settings.models.rules if rule.severity is not None
        ),
    )


def model_labels(settings: Settings) -> ModelLabels:
    """Labels of models, by the rules of `models`."""
    return ModelLabels(
        [
            ModelRule(rule.model, rule.labels, rule.severity, rule.runbook_url)
            for rule in settings.models.rules
        ]
    )


def watched_fleet(settings: Settings, activity: Callable[[], Mapping[str, ModelActivity]]) -> WatchedFleet:
    """Build labels and topics of the models whose activity a function returns."""
    predictions = [topic.name for topic in settings.topics.predictions]
    labels = [topic.name for topic in settings.topics.labels]
    topics = TopicsOfRun(
        predictions[0] if len(predictions) == 1 else "", labels[0] if len(labels) == 1 else ""
    )
    return WatchedFleet(model_labels(settings), activity, topics)


def build_pacing(settings: Settings, identity: str) -> Pacing:
    """Build the pacing of notifications, for all receivers but Alertmanagers, which group by themselves."""
    alerts = settings.alerts
    spec = PacingSpec(alerts.group_wait, alerts.max_per_minute, alerts.digest_size)
    paced = [receiver for receiver in alerts.receivers if not KINDS[receiver.type].groups]
    closing = {receiver.name for receiver in paced if not KINDS[receiver.type].reads_digests}
    return Pacing(spec, [receiver.name for receiver in paced], identity, closing)


def notifies_of_hints(settings: Settings) -> bool:
    """Return whether receivers are notified of early hints."""
    hints = settings.monitors.early_hints
    return hints is not None and hints.notify


def notifies_of_comparisons(settings: Settings) -> bool:
    """Return whether a receiver is notified of verdicts on challengers."""
    compared = bool(settings.monitors.comparisons)
    return compared and any("comparisons" in each.events for each in settings.alerts.receivers)


def build_alarm_book(settings: Settings, identity: str) -> AlarmBook:
    """Build an empty alarm book; `identity` is that of the store, or the name that replicas share."""
    return AlarmBook(alarms_spec(settings), identity)


def restored_alerts(settings: Settings, identity: str, saved: RecoveredState) -> tuple[AlarmBook, Pacing]:
    """Build the alarm book and the pacing, and restore what was committed of them.

    Raises
    ------
    PackedError
        If a committed outbox entry cannot be decoded.
    """
    book, pacing = build_alarm_book(settings, identity), build_pacing(settings, identity)
    if ALARMS in saved.sections:
        book.restore(saved.sections[ALARMS])
    if PACING in saved.sections:
        pacing.restore(saved.sections[PACING])
    check_entries(saved.outbox)
    return book, pacing


def build_deliveries(
    settings: Settings, telemetry: Telemetry, speaks: Callable[[], bool] | None = None
) -> Deliveries:
    """Build receivers and their deliveries, which send only while `speaks()` is true.

    Raises
    ------
    SettingsError
        As `build_receivers`.
    """
    alerts = settings.alerts
    spec = DeliverySpec(give_up_after_ms=alerts.give_up_after, max_pending=alerts.max_pending)
    return Deliveries(build_receivers(settings), spec, telemetry.emit, speaks=speaks)


_TEST_MODEL: Final = "streamwatch-test"


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a test notification at one receiver."""

    receiver: str
    host: str
    milliseconds: int
    problem: str | None
    """Why it was not delivered; None if it was."""


async def try_receivers(
    settings: Settings, only: str | None = None, *, hint: bool = False
) -> AsyncIterator[Trial]:
    """Send test notifications to each receiver, and resolve them, so that nothing stays open.

    A receiver is sent an alarm and an early verdict; with `events: [digest]` also a digest, or only that if
    it takes nothing else. Receivers that are sent reminders of open alarms (Alertmanager) are not sent the
    resolution: they resolve the alarm themselves after some minutes. Resolved at once, it would not leave an
    Alertmanager, which waits to group alarms.

    Parameters
    ----------
    settings
        Settings with the receivers.
    only
        Name of the only receiver to try; None: all.
    hint
        Whether to send an early hint instead.

    Raises
    ------
    SettingsError
        As `build_receivers`, or if there is no receiver named `only`.
    """
    receivers: Sequence[Receiver] = build_receivers(settings)
    names = [receiver.name for receiver in receivers]
    if only is not None and only not in names:
        raise SettingsError(
            f"--receiver: expected one of {', '.join(names) or '(none configured)'}, got {only!r}"
        )
    for receiver, section in zip(receivers, settings.alerts.receivers, strict=True):
        if only in {None, receiver.name}:
            now_ms = host_ms()
            if hint:
                samples = [test_hint(now_ms)]
            else:
                samples = [test_notification(now_ms)] if set(section.events) != {"digest"} else []
                samples += [test_early_verdict(now_ms)] if samples else []
                samples += [test_digest(now_ms)] if "digest" in section.events else []
            yield await _try(receiver, samples, now_ms)


def _ended(part: IncidentAlarm, now_ms: int) -> IncidentAlarm:
    """Return the part as resolved: back to its level, or retracted if it is an early verdict."""
    judgement = part.alarm.judgement
    if judgement is None:
        return msgspec.structs.replace(part, ended_at_ms=now_ms, reason="back_to_level")
    retracted = msgspec.structs.replace(
        judgement, verdict=0, since_ms=now_ms, status="retracted", earliest_ms=None, latest_ms=None
    )
    alarm = msgspec.structs.replace(part.alarm, ordinal=2, judgement=retracted)
    return msgspec.structs.replace(part, alarm=alarm, ended_at_ms=now_ms, reason="retracted")


def _over(firing: Notification, now_ms: int) -> Notification:
    """Return the notification that resolves a test notification."""
    hint = firing.hint
    if hint is not None:
        hint = msgspec.structs.replace(hint, ended_at_ms=now_ms, reason="no_longer_active")
    return msgspec.structs.replace(
        firing,
        id=identify("resolved", firing.id),
        kind="resolved",
        parts=tuple(_ended(part, now_ms) for part in firing.parts),
        hint=hint,
    )


async def _try(receiver: Receiver, samples: Sequence[Notification], now_ms: int) -> Trial:
    """Send samples, and their resolutions, until the receiver refuses one; times the first delivery."""
    began = time.monotonic()
    milliseconds, problem = 0, None
    await receiver.open()
    try:
        for sample in samples:
            answer = await receiver.deliver(sample, now_ms)
            milliseconds = milliseconds or round(1000 * (time.monotonic() - began))
            ends = sample.kind == "firing" and receiver.repeat_interval_seconds is None
            if isinstance(answer, Delivered) and ends:
                answer = await receiver.deliver(_over(sample, now_ms), now_ms)
            if not isinstance(answer, Delivered):
                problem = meaning(answer.reason)
                break
    finally:
        await receiver.close()
    return Trial(receiver.name, receiver.host, milliseconds, problem)


def test_notification(now_ms: int) -> Notification:
    """Make a test notification of an alarm of severity info, of a model that does not exist."""
    alarm = Alarm(_TEST_MODEL, "test", 1, 1_000, now_ms, now_ms, 50.5, 50.0, 0.1, 0.3, 1_000.0)
    return _firing("test", IncidentAlarm(alarm, "info", now_ms, now_ms, alarm.before, now_ms), now_ms)


def test_early_verdict(now_ms: int) -> Notification:
    """Make a test notification of an early verdict with changed delays, of a model that does not exist."""
    since_ms = now_ms - 9 * DAY_MS
    judgement = Judgement(
        "majority",
        -1,
        1,
        since_ms,
        basis="cohorts",
        status="early",
        earliest_ms=since_ms - DAY_MS,
        latest_ms=since_ms + DAY_MS,
    )
    alarm = Alarm(
        _TEST_MODEL, VERDICT, 1, 1_000, now_ms, now_ms, 1.0, 1.0, 0.1, 0.3, 1_000.0, judgement=judgement
    )
    part = IncidentAlarm(alarm, "info", since_ms, now_ms, alarm.before, now_ms, delays_moved=("hits",))
    return _firing("test early verdict", part, now_ms)


def _firing(reason: str, part: IncidentAlarm, now_ms: int) -> Notification:
    """Make a test notification of an incident that begins with one alarm."""
    empty = _test("firing", reason, now_ms)
    return msgspec.structs.replace(empty, parts=(part,), news=(part.alarm.detector,))


def _test(kind: Kind, reason: str, now_ms: int) -> Notification:
    """Make a test notification that is about nothing yet."""
    name = identify(kind, reason, now_ms)
    return Notification(id=name, kind=kind, severity="info", issued_ms=now_ms, incident=name, test=True)


def test_digest(now_ms: int) -> Notification:
    """Make a test digest of worse models that lists a model that does not exist."""
    at_ms = now_ms // DAY_MS * DAY_MS
    pair = WorsePair(
        _TEST_MODEL, "majority", 1e5, "worse", at_ms - 9 * DAY_MS, at_ms - 10 * DAY_MS, at_ms - 8 * DAY_MS
    )
    fleet = NotifiedFleet(
        at_ms=at_ms,
        before_ms=at_ms - DAY_MS,
        share=SHARE,
        pairs=2,
        models=1,
        number=1,
        listed=(pair,),
        number_added=1,
        added=(RivalPair(pair.model, pair.opponent),),
        number_left=0,
        left=(),
    )
    return msgspec.structs.replace(_test("digest", "test", now_ms), fleet=fleet)


def test_hint(now_ms: int) -> Notification:
    """Make a test notification of an early hint, of a model that does not exist."""
    active = ActiveHint(1, now_ms, "test", more=True, before=0.1, now=0.3)
    empty = _test("firing", "test hint", now_ms)
    return msgspec.structs.replace(empty, hint=NotifiedHint(_TEST_MODEL, active))
