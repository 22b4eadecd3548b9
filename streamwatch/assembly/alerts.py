"""From the `alerts` section to the book of alarms, the outlets and their deliveries."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import msgspec
from yarl import URL

from streamwatch.core.alarm_book import AlarmBook
from streamwatch.core.alarm_rules import AlarmRule, AlarmsSpec
from streamwatch.core.events import Alarm
from streamwatch.core.notices import Notice, identify
from streamwatch.core.outlets import Delivered, Outlet
from streamwatch.daemon.delivery import Deliveries, DeliverySpec
from streamwatch.edge.notifiers import (
    Alertmanager,
    EndpointSpec,
    HttpOutlet,
    PagerDuty,
    Slack,
    Webhook,
    alertmanager,
    pagerduty,
)
from streamwatch.edge.notifiers.addresses import refused
from streamwatch.edge.notifiers.answers import meaning
from streamwatch.edge.notifiers.webhook import key_of
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.alerts import OutletSection
from streamwatch.telemetry import Telemetry


def alarms_spec(settings: Settings) -> AlarmsSpec:
    """Which alarms are told.

    Raises
    ------
    SettingsError
        A rule is about no configured detector.
    """
    alerts = settings.alerts
    otherwise = AlarmRule("*", "*", alerts.severity, alerts.cooldown, alerts.min_outcomes)
    detectors = [detector.name for detector in settings.monitors.detectors]
    rules: list[AlarmRule] = []
    for index, rule in enumerate(alerts.rules):
        if not any(fnmatchcase(name, rule.detector) for name in detectors):
            raise SettingsError(
                f"alerts.rules[{index}].detector: expected a pattern of {', '.join(detectors) or 'none'}, "
                f"got {rule.detector!r}"
            )
        said = {
            "severity": rule.severity,
            "cooldown_ms": rule.cooldown,
            "min_outcomes": rule.min_outcomes,
        }
        given = {key: value for key, value in said.items() if value is not None}
        rules.append(replace(otherwise, detector=rule.detector, model=rule.model, **given))
    return AlarmsSpec(
        rules=tuple(rules),
        otherwise=otherwise,
        alarm_ttl_ms=alerts.alarm_ttl,
        max_alarm_age_ms=alerts.max_alarm_age,
        digest_interval_ms=alerts.digest_interval,
        digest_size=alerts.digest_size,
    )


def build_alarm_book(settings: Settings, identity: str) -> AlarmBook:
    """The book of alarms of a state; `identity` is the store's."""
    return AlarmBook(alarms_spec(settings), identity)


def build_deliveries(settings: Settings, telemetry: Telemetry) -> Deliveries:
    """Outlets and what delivers to them; raises SettingsError as `build_outlets`."""
    alerts = settings.alerts
    spec = DeliverySpec(give_up_after_ms=alerts.give_up_after, max_pending=alerts.max_pending)
    return Deliveries(build_outlets(settings), spec, telemetry.emit)


def build_outlets(settings: Settings) -> list[HttpOutlet]:
    """Every configured outlet; secrets are read from their files here.

    Raises
    ------
    SettingsError
        A URL or a secret cannot be used; the text shows neither.
    """
    external_url = settings.alerts.external_url or ""
    return [_outlet(section, i, external_url) for i, section in enumerate(settings.alerts.outlets)]


def _outlet(section: OutletSection, index: int, external_url: str) -> HttpOutlet:
    place = f"alerts.outlets[{index}]"
    url = _url(section, place)
    spec = EndpointSpec(
        name=section.name,
        url=url,
        timeout_seconds=section.timeout / 1000,
        severities=None if section.severities is None else frozenset(section.severities),
        ca_file=_authorities(section, place),
    )
    match section.type:
        case "webhook":
            return HttpOutlet(spec, Webhook(_keys(section, place), external_url))
        case "alertmanager":
            form = Alertmanager(section.repeat, dict(section.labels), external_url)
            spec = replace(spec, url=_alerts_url(url), repeat_seconds=section.repeat / 1000)
            return HttpOutlet(spec, form, form.reminder)
        case "slack":
            return HttpOutlet(spec, Slack(external_url))
        case _:
            return HttpOutlet(spec, PagerDuty(section.read_routing_key() or "", external_url=external_url))


def _url(section: OutletSection, place: str) -> str:
    text = section.read_url() or pagerduty.URL
    key = "url_file" if section.url_file else "url"
    try:
        url = URL(text)
        good = url.scheme in {"http", "https"} and bool(url.host) and bool(url.port)
    except ValueError:
        good = False
    if not good:
        raise SettingsError(f"{place}.{key}: expected http://… or https://… with a host (not shown)")
    if refused(URL(text).host or ""):
        raise SettingsError(
            f"{place}.{key}: {URL(text).host} is a link-local address, which is never spoken to"
        )
    return text


def _alerts_url(url: str) -> str:
    """The address of an Alertmanager, or of its API, with the path of the API."""
    bare = URL(url).with_path(URL(url).path.rstrip("/").removesuffix(alertmanager.PATH) + alertmanager.PATH)
    return str(bare)


def _keys(section: OutletSection, place: str) -> list[bytes]:
    keys: list[bytes] = []
    for number, secret in enumerate(section.read_secrets()):
        try:
            keys.append(key_of(secret))
        except ValueError as error:
            inline = len(section.secrets)
            where = f"secrets[{number}]" if number < inline else f"secrets_files[{number - inline}]"
            raise SettingsError(f"{place}.{where}: {error}") from None
    return keys


def _authorities(section: OutletSection, place: str) -> str | None:
    if section.ca_file is None:
        return None
    try:
        ssl.create_default_context(cafile=section.ca_file)
    except ssl.SSLError:
        raise SettingsError(f"{place}.ca_file: expected PEM certificates in {section.ca_file}") from None
    return str(section.ca_file)


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test notice fared at one outlet."""

    outlet: str
    host: str
    milliseconds: int
    problem: str | None
    """Why it was not delivered; None if it was."""


async def try_outlets(settings: Settings, only: str | None = None) -> AsyncIterator[Trial]:
    """Send a test notice to each outlet, and that it is over, so that nothing stays open.

    One that is reminded of open alarms hears nothing more, and ends it by itself some minutes later: ended at
    once, it would reach nobody behind an Alertmanager, which waits to see what belongs together.

    Raises
    ------
    SettingsError
        As `build_outlets`, or `only` is none of them.
    """
    outlets: Sequence[Outlet] = build_outlets(settings)
    names = [outlet.name for outlet in outlets]
    if only is not None and only not in names:
        raise SettingsError(
            f"--outlet: expected one of {', '.join(names) or '(none configured)'}, got {only!r}"
        )
    for outlet in outlets:
        if only in {None, outlet.name}:
            yield await _try(outlet)


async def _try(outlet: Outlet) -> Trial:
    now_ms = time.time_ns() // 1_000_000
    firing = test_notice(now_ms)
    over = msgspec.structs.replace(
        firing,
        id=identify("resolved", firing.id),
        kind="resolved",
        ended_at_ms=now_ms,
        reason="back_to_level",
    )
    began = time.monotonic()
    await outlet.open()
    try:
        answer = await outlet.deliver(firing, now_ms)
        milliseconds = round(1000 * (time.monotonic() - began))
        if isinstance(answer, Delivered) and outlet.repeat_seconds is None:
            answer = await outlet.deliver(over, now_ms)
    finally:
        await outlet.close()
    problem = None if isinstance(answer, Delivered) else meaning(answer.reason)
    return Trial(outlet.name, outlet.host, milliseconds, problem)


def test_notice(now_ms: int) -> Notice:
    """An alarm nobody need act on, of a model that does not exist."""
    alarm = Alarm("streamwatch-test", "test", 1, 1_000, now_ms, 50.5, 50.0, 0.1, 0.3, 1_000.0)
    name = identify("firing", "test", now_ms)
    return Notice(
        id=name,
        kind="firing",
        severity="info",
        issued_ms=now_ms,
        firing_id=name,
        alarm=alarm,
        started_at_ms=now_ms,
        before=alarm.before,
        test=True,
    )
