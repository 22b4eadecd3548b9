"""Ways to tell people, one file each: webhook, Alertmanager, Slack, PagerDuty.

A format turns a notice into a letter; `HttpOutlet` posts letters and says how that went. Formats know nothing
of sockets, and share only words (`wording`).

================  ====================================================================================
``webhook``       Standard Webhooks: signed JSON
``alertmanager``  Alertmanager's v2 API; the only one that is reminded of open alarms
``slack``         Slack's incoming webhooks: blocks
``pagerduty``     PagerDuty's Events API v2: trigger and resolve
================  ====================================================================================
"""

from __future__ import annotations

from streamwatch.edge.notifiers.alertmanager import Alertmanager
from streamwatch.edge.notifiers.letter import Format, Letter, Reminder
from streamwatch.edge.notifiers.pagerduty import PagerDuty
from streamwatch.edge.notifiers.post import EndpointSpec, HttpOutlet
from streamwatch.edge.notifiers.slack import Slack
from streamwatch.edge.notifiers.webhook import Webhook

__all__ = [
    "Alertmanager",
    "EndpointSpec",
    "Format",
    "HttpOutlet",
    "Letter",
    "PagerDuty",
    "Reminder",
    "Slack",
    "Webhook",
]
