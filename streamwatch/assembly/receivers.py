"""Receivers of notifications, as the `alerts` section names them."""

from __future__ import annotations

import ssl

from yarl import URL

from streamwatch.edge.outgoing.ssrf_guard import refused
from streamwatch.edge.receivers import KINDS, EndpointSpec, HttpReceiver, ReceiverKind, ReceiverOptions
from streamwatch.edge.receivers.webhook import key_of
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.alerts import ReceiverSection


def build_receivers(settings: Settings) -> list[HttpReceiver]:
    """Every configured receiver; secrets are read from their files here.

    Raises
    ------
    SettingsError
        A URL or a secret cannot be used; the text shows neither.
    """
    external_url = settings.alerts.external_url or ""
    return [_receiver(section, i, external_url) for i, section in enumerate(settings.alerts.receivers)]


def _receiver(section: ReceiverSection, index: int, external_url: str) -> HttpReceiver:
    place = f"alerts.receivers[{index}]"
    kind = KINDS.get(section.type)
    if kind is None:
        raise SettingsError(f"{place}.type: expected one of {', '.join(KINDS)}, got {section.type!r}")
    spec = EndpointSpec(
        name=section.name,
        url=_url(section, kind, place),
        timeout_seconds=section.timeout / 1000,
        severities=None if section.severities is None else frozenset(section.severities),
        ca_file=_authorities(section, place),
    )
    options = ReceiverOptions(
        external_url=external_url,
        keys=_keys(section, place),
        routing_key=section.read_routing_key() or "",
        labels=dict(section.labels),
        repeat_interval_ms=section.repeat_interval,
    )
    return kind.build(spec, options)


def _url(section: ReceiverSection, kind: ReceiverKind, place: str) -> str:
    text = section.read_url() or kind.default_url
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


def _keys(section: ReceiverSection, place: str) -> list[bytes]:
    keys: list[bytes] = []
    for number, secret in enumerate(section.read_secrets()):
        try:
            keys.append(key_of(secret))
        except ValueError as error:
            inline = len(section.secrets)
            where = f"secrets[{number}]" if number < inline else f"secrets_files[{number - inline}]"
            raise SettingsError(f"{place}.{where}: {error}") from None
    return keys


def _authorities(section: ReceiverSection, place: str) -> str | None:
    if section.ca_file is None:
        return None
    try:
        ssl.create_default_context(cafile=section.ca_file)
    except ssl.SSLError:
        raise SettingsError(f"{place}.ca_file: expected PEM certificates in {section.ca_file}") from None
    return str(section.ca_file)
