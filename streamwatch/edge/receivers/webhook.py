"""Signed JSON by the Standard Webhooks specification (standardwebhooks.com, 1.0.0).

`webhook-id` is the notification's id, the same on every attempt. `webhook-timestamp` is the attempt's.
`webhook-signature` holds one `v1,<base64>` per secret, separated by spaces: HMAC-SHA256 of
`id.timestamp.body`. With two secrets, the receiving side may switch from the old to the new one at any time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamwatch.core.alerting.notification import (
    Gathered,
    IncidentAlarm,
    Notification,
    NotifiedComparison,
    NotifiedFleet,
    NotifiedHint,
    RivalPair,
)
from streamwatch.core.estimators.registers.fleet import RULE
from streamwatch.edge.receivers.kind import (
    Configured,
    EndpointSpec,
    HttpRequestBody,
    OwnKey,
    ReceiverKind,
    ReceiverOptions,
)
from streamwatch.edge.receivers.texts import description, iso, link, look_first, title

MAX_BYTES = 20_000
"""Limit of a payload: the specification asks receivers to fetch larger ones."""
_MIN_KEY_BYTES = 16


def key_of(secret: str) -> bytes:
    """Decode a secret written `whsec_<base64>`; the prefix and the padding may be missing.

    Raises
    ------
    ValueError
        Not base64, or shorter than 16 bytes; the message has no part of the secret.
    """
    encoded = secret.strip().removeprefix("whsec_").rstrip("=")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("expected whsec_ and base64 (not shown)") from None
    if len(key) < _MIN_KEY_BYTES:
        raise ValueError(f"expected at least {_MIN_KEY_BYTES} bytes in base64, got {len(key)} (not shown)")
    return key


@dataclass(frozen=True, slots=True)
class Webhook:
    """`Format` for a receiver that has one of `keys`."""

    keys: Sequence[bytes] = field(repr=False)
    external_url: str = ""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """Make the signed request; the signature covers `now_ms`."""
        body = body_of(notification, self.external_url)
        seconds = now_ms // 1000
        signed = b".".join((notification.id.encode(), str(seconds).encode(), body))
        signatures = (
            base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in self.keys
        )
        return HttpRequestBody(
            body,
            {
                "webhook-id": notification.id,
                "webhook-timestamp": str(seconds),
                "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
            },
        )


def body_of(notification: Notification, external_url: str) -> bytes:
    """Encode a notification as JSON of `type`, `timestamp` and `data`, in at most `MAX_BYTES`.

    `type` is `drift.firing`, `drift.updated`, `drift.resolved` or `drift.digest`, of an early hint
    `hint.firing` or `hint.resolved`, of a challenger `comparison.firing`, `comparison.updated` or
    `comparison.resolved`, of several notifications at once `notifications.digest`, of a model that is to
    be retrained `model.retraining_due`, and of the models that are worse `fleet.digest`. The lists of a
    digest are halved until it fits; of an incident with very many detectors the oldest lose their `newest`
    alarm.
    """
    data: dict[str, Any] = {
        "id": notification.id,
        "incident": notification.incident,
        "test": notification.test,
        "severity": notification.severity,
        "title": title(notification),
        "description": _cut(notification, external_url),
        "started_at": iso(notification.started_at_ms),
        "ended_at": _iso(notification.ended_at_ms),
    }
    if notification.model:
        data |= {"labels": notification.labels, "runbook_url": notification.runbook_url}
    if external_url:
        data["url"] = link(external_url, notification)
    if (hint := notification.hint) is not None:
        data |= {"model": hint.model, "hint": _hint(hint)}
    elif (pair := notification.comparison) is not None:
        data |= {"model": pair.challenger, "comparison": _comparison(pair)}
    elif (gathered := notification.gathered) is not None:
        data["digest"] = _gathered(gathered)
    elif (fleet := notification.fleet) is not None:
        data["digest"] = _fleet(fleet)
    elif notification.digest is None:
        data |= {"model": notification.model, "news": notification.news}
        data["alarms"] = [_part(part) for part in notification.parts]
        data["class_shift"] = notification.shift
        data["segment"] = notification.segment
    if notification.digest is not None:
        data["digest"] = msgspec.structs.asdict(notification.digest)
    envelope = {"type": _type(notification), "timestamp": iso(notification.issued_ms), "data": data}
    body = msgspec.json.encode(envelope)
    while len(body) >= MAX_BYTES and (lists := _lists(data.get("digest", {}))):
        data["digest"] |= {name: each[: len(each) // 2] for name, each in lists.items()}
        body = msgspec.json.encode(envelope)
    shortened = iter(data.get("alarms", ()))
    while len(body) >= MAX_BYTES and (part := next(shortened, None)) is not None:
        del part["newest"]
        body = msgspec.json.encode(envelope)
    return body


def _cut(notification: Notification, external_url: str) -> str:
    """The description in at most 2,000 characters; the advice on what to look at is never cut."""
    look = look_first(notification, external_url)
    text = description(notification, external_url).removesuffix(look)
    return text[: max(0, 2_000 - len(look))] + look


def _type(notification: Notification) -> str:
    if notification.gathered is not None:
        return "notifications.digest"
    if notification.fleet is not None:
        return "fleet.digest"
    if notification.kind == "retraining":
        return "model.retraining_due"
    if notification.comparison is not None:
        return f"comparison.{notification.kind}"
    return f"{'drift' if notification.hint is None else 'hint'}.{notification.kind}"


def _gathered(gathered: Gathered) -> dict[str, Any]:
    """Fields of a digest of notifications; each listed notification is one line of text."""
    return {
        "notifications": gathered.notifications,
        "models": gathered.models,
        "firing": gathered.firing,
        "resolved": gathered.resolved,
        "listed": [
            {
                "id": each.id,
                "type": _type(each),
                "incident": each.incident,
                "model": each.model,
                "severity": each.severity,
                "title": title(each),
                "labels": each.labels,
            }
            for each in gathered.listed
        ],
    }


def _fleet(fleet: NotifiedFleet) -> dict[str, Any]:
    """Fields of the list of worse models; `since` and its interval are null unless the verdict is `worse`."""
    return {
        "at": iso(fleet.at_ms),
        "before": _iso(fleet.before_ms),
        "share": fleet.share,
        "rule": RULE,
        "pairs": fleet.pairs,
        "models": fleet.models,
        "number": fleet.number,
        "number_added": fleet.number_added,
        "number_left": fleet.number_left,
        "listed": [
            {
                "model": pair.model,
                "opponent": pair.opponent,
                "e_value": pair.e_value,
                "verdict": pair.verdict,
                "since": _iso(pair.since_ms),
                "earliest": _iso(pair.earliest_ms),
                "latest": _iso(pair.latest_ms),
            }
            for pair in fleet.listed
        ],
        "added": _pairs(fleet.added),
        "left": _pairs(fleet.left),
    }


def _pairs(pairs: Sequence[RivalPair]) -> list[dict[str, str]]:
    return [{"model": pair.model, "opponent": pair.opponent} for pair in pairs]


def _iso(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)


def _hint(hint: NotifiedHint) -> dict[str, Any]:
    """Fields of a hint; `predicted_class` is null where the mean score changed, not a class's share."""
    text = hint.as_notified
    return {
        "predicted_class": text.predicted_class,
        "more": text.more,
        "before": text.before,
        "now": text.now,
        "ordinal": text.ordinal,
        "reason": hint.reason,
    }


def _comparison(pair: NotifiedComparison) -> dict[str, Any]:
    """Fields of a verdict on a challenger; `status` is null in the order of labels."""
    return {
        "champion": pair.champion,
        "challenger": pair.challenger,
        "verdict": "better" if pair.verdict > 0 else "worse",
        "since": iso(pair.since_ms),
        "basis": pair.basis,
        "utility": pair.utility,
        "status": pair.status or None,
        "reason": pair.reason,
    }


def _part(part: IncidentAlarm) -> dict[str, Any]:
    """Fields of one alarm of an incident; `newest` is the detector's newest alarm, or the closing verdict."""
    expected: dict[str, Any] = {}
    if part.false_monthly is not None:
        expected["false_alarms_expected_monthly"] = part.false_monthly
    if part.delays_moved:
        expected["delays_moved"] = part.delays_moved
    return {
        "detector": part.alarm.detector,
        "severity": part.severity,
        "started_at": iso(part.started_at_ms),
        "ended_at": _iso(part.ended_at_ms),
        "reason": part.reason,
        "count": part.alarms,
        "before": part.before,
        "newest": part.alarm,
        "alternation": part.alternation,
        "confirmation_expected_at": None
        if part.expected_ms is None or not part.is_unconfirmed
        else iso(part.expected_ms),
        "confirmation": part.confirmation,
        **expected,
    }


_LISTS = ("tallies", "earliest", "listed", "added", "left")


def _lists(digest: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return the lists of a digest that can be shortened."""
    return {name: digest[name] for name in _LISTS if digest.get(name)}


def configure(spec: EndpointSpec, options: ReceiverOptions) -> Configured:
    """Make the format for a webhook."""
    return Configured(spec, Webhook(options.own["secrets"], options.external_url))


KIND = ReceiverKind(
    "webhook",
    (
        OwnKey(
            "secrets",
            "secrets",
            "signing secrets, each `whsec_` followed by base64. List two while one replaces the other.",
            parse=key_of,
            advice="`openssl rand -base64 32` makes one",
        ),
    ),
    configure,
)
