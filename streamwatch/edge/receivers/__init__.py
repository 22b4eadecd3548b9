"""Receivers of notifications, one file each: webhook, Alertmanager, Slack, PagerDuty.

A `Format` makes a request body of a notification; `HttpReceiver` (in `http`) posts it and reports the result.
Formats do no I/O, and share only `texts`.

================  ====================================================================================
``webhook``       Standard Webhooks: signed JSON
``alertmanager``  Alertmanager's v2 API; the only receiver that is sent open alarms again
``slack``         Slack's incoming webhooks: blocks
``pagerduty``     PagerDuty's Events API v2: trigger and resolve
================  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamwatch.edge.receivers import alertmanager, pagerduty, slack, webhook
from streamwatch.edge.receivers.kind import (
    EndpointSpec,
    HttpRequestBody,
    OwnKey,
    ReceiverKind,
    ReceiverOptions,
)

__all__ = [
    "KINDS",
    "EndpointSpec",
    "HttpRequestBody",
    "OwnKey",
    "ReceiverKind",
    "ReceiverOptions",
]

KINDS: Mapping[str, ReceiverKind] = MappingProxyType(
    {module.KIND.name: module.KIND for module in (webhook, alertmanager, slack, pagerduty)}
)
"""Types of receivers by name."""
