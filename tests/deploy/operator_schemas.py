"""The parts of the Prometheus Operator's API that the manifests use; a field that is not listed is refused.

Source: its API reference, PodMonitor and PrometheusRule, monitoring.coreos.com/v1.
"""

from __future__ import annotations

from typing import Any

DURATION = {
    "type": "string",
    "pattern": r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
}
NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
TEXT = {"type": "string", "minLength": 1}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _kind(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return _object(
        ["apiVersion", "kind", "metadata", "spec"],
        apiVersion={"const": "monitoring.coreos.com/v1"},
        kind={"const": kind},
        metadata=_object(
            ["name"],
            name={"type": "string", "pattern": NAME},
            namespace=TEXT,
            labels=TEXTS,
            annotations=TEXTS,
        ),
        spec=spec,
    )


_SELECTOR = _object([], matchLabels=TEXTS, matchExpressions={"type": "array"})
_ENDPOINT = _object(
    [],
    port=TEXT,
    portNumber={"type": "integer"},
    path={"type": "string", "pattern": "^/"},
    scheme={"enum": ["http", "https"]},
    interval=DURATION,
    scrapeTimeout=DURATION,
    honorLabels={"type": "boolean"},
    honorTimestamps={"type": "boolean"},
    tlsConfig={"type": "object"},
)
_RECORDING = _object(["record", "expr"], record=TEXT, expr=TEXT, labels=TEXTS)
_ALERT = _object(
    ["alert", "expr"],
    alert=TEXT,
    expr=TEXT,
    labels=TEXTS,
    annotations=TEXTS,
    keep_firing_for=DURATION,
    **{"for": DURATION},
)
_GROUP = _object(
    ["name", "rules"],
    name=TEXT,
    interval=DURATION,
    query_offset=DURATION,
    limit={"type": "integer", "minimum": 0},
    labels=TEXTS,
    rules={"type": "array", "items": {"oneOf": [_RECORDING, _ALERT]}},
)

SCHEMAS: dict[str, dict[str, Any]] = {
    "PodMonitor": _kind(
        "PodMonitor",
        _object(
            ["selector", "podMetricsEndpoints"],
            selector=_SELECTOR,
            jobLabel=TEXT,
            podTargetLabels={"type": "array", "items": TEXT},
            sampleLimit={"type": "integer", "minimum": 0},
            podMetricsEndpoints={"type": "array", "minItems": 1, "items": _ENDPOINT},
        ),
    ),
    "PrometheusRule": _kind("PrometheusRule", _object(["groups"], groups={"type": "array", "items": _GROUP})),
}
