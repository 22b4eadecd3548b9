"""Records of the outcomes topic and of the events topic: their fields, and the JSON Schemas of both."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

SCHEMA_VERSION: Final = 1
"""Version of both schemas: it grows when a field is removed or means something else, not for a new field."""

Version: TypeAlias = Annotated[int, Meta(ge=1, description="Version of this schema.")]
Life: TypeAlias = Annotated[
    str,
    Meta(
        description="Name of one sequence of numbers: of the state that wrote the record, since it began to"
        " publish. A new state, as of an empty directory, begins a new one. Replicas share one."
    ),
]


class OutcomeDocument(msgspec.Struct, frozen=True):
    """One evaluated outcome: a prediction, its label, and whether the prediction was right."""

    schema_version: Version
    life: Life
    number: Annotated[
        int,
        Meta(
            ge=1, description="Number of the outcome in its life, without gaps, in the order of evaluation."
        ),
    ]
    model: Annotated[str, Meta(description="Name of the model.")]
    fold: Annotated[int | None, Meta(description="Fold of the model, where models predict in folds.")]
    namespace: Annotated[
        str | None, Meta(description="Namespace of the id; empty for the default one, null without an id.")
    ]
    id: Annotated[
        str | None,
        Meta(
            description="Id that prediction and label share. Null for outcomes that no record resolves: those"
            " assumed at their deadline (`join.on_expiry`), and all under `join.order: prediction_time`."
        ),
    ]
    id_digest: Annotated[
        str,
        Meta(
            description="XXH3 of the id, 128 bits, as 32 hexadecimal digits; in a namespace, of its name, the"
            " byte 0x1F and the id."
        ),
    ]
    prediction: Annotated[
        str, Meta(description="Predicted class; the first one, under `join.conflicts: both`.")
    ]
    last_prediction: Annotated[
        str | None,
        Meta(description="Class predicted last, where the prediction was revised (`join.conflicts: both`)."),
    ]
    label: Annotated[str, Meta(description="True class.")]
    right: Annotated[bool, Meta(description="Whether `prediction` is `label`.")]
    assumed: Annotated[
        bool, Meta(description="Whether the label was assumed at the deadline (`join.on_expiry`).")
    ]
    last_known_label: Annotated[
        str | None,
        Meta(description="Label known last when the prediction was made: the prediction of no change."),
    ]
    prediction_timestamp_ms: Annotated[
        int, Meta(description="Time of the label minus `delay_ms`, milliseconds since 1970.")
    ]
    label_timestamp_ms: Annotated[
        int, Meta(description="The label's own time, else its record's, milliseconds since 1970.")
    ]
    delay_ms: Annotated[int, Meta(ge=0, description="Time from prediction to label, at least 0.")]
    resolved_timestamp_ms: Annotated[
        int,
        Meta(description="Clock of the merged sequence where label and prediction met."),
    ]
    waited_ms: Annotated[
        int, Meta(ge=0, description="How long the prediction waited on the clock of the merged sequence.")
    ]
    segments: Annotated[dict[str, str] | None, Meta(description="Values of the prediction's segments.")]
    label_probability: Annotated[
        float | None, Meta(description="Probability π with which the label was asked for.")
    ]
    label_requested: Annotated[bool | None, Meta(description="Whether the label was asked for.")]


EventType: TypeAlias = Literal["alarm", "verdict", "comparison", "notification"]


class EventDocument(msgspec.Struct, frozen=True):
    """An alarm, a changed verdict on a model or comparison, or a notification; others' fields are null."""

    schema_version: Version
    life: Life
    id: Annotated[
        str,
        Meta(
            description="Unique in its life, unless an older copy of the state was restored. A notification's"
            " is the one by which receivers know it."
        ),
    ]
    number: Annotated[
        int | None,
        Meta(
            description="Number of the alarm or verdict in its life, without gaps. Null for comparisons and"
            " notifications, which are decided at commits."
        ),
    ]
    type: Annotated[EventType, Meta(description="What happened.")]
    model: Annotated[str, Meta(description="Model; the challenger of a comparison; empty for a digest.")]
    timestamp_ms: Annotated[
        int,
        Meta(
            description="Milliseconds since 1970: event time of the outcome that raised an alarm or verdict,"
            " or of a comparison's latest pair; of a notification, when it was decided, by the host's clock."
        ),
    ]
    detector: Annotated[str | None, Meta(description="Detector of an alarm.")] = None
    ordinal: Annotated[int | None, Meta(description="Number of the alarm of this model and detector.")] = None
    outcome: Annotated[
        int | None, Meta(description="Number of the outcome of the model that raised it, from 1.")
    ] = None
    statistic: Annotated[float | None, Meta(description="Statistic of the detector.")] = None
    threshold: Annotated[float | None, Meta(description="Threshold that the statistic exceeded.")] = None
    error_before: Annotated[float | None, Meta(description="Mean loss before the change.")] = None
    error_after: Annotated[float | None, Meta(description="Mean loss since the change.")] = None
    verdict: Annotated[
        Literal["better", "worse", "open"] | None, Meta(description="New verdict on a model or challenger.")
    ] = None
    opponent: Annotated[
        str | None, Meta(description="Opponent of a verdict: a baseline, or the champion of a comparison.")
    ] = None
    basis: Annotated[
        str | None, Meta(description="`cohorts` of prediction time, or `labels` in their order.")
    ] = None
    status: Annotated[
        str | None, Meta(description="Of a verdict by cohorts: early, confirmed or retracted.")
    ] = None
    since_timestamp_ms: Annotated[
        int | None, Meta(description="Event time since which the verdict holds; null for an open one.")
    ] = None
    earliest_timestamp_ms: Annotated[
        int | None,
        Meta(
            description="By cohorts: start of the 80 % interval of that time; null if it may be before all "
            "that was judged."
        ),
    ] = None
    latest_timestamp_ms: Annotated[
        int | None, Meta(description="By cohorts: end of that interval; null for an open verdict.")
    ] = None
    kind: Annotated[
        str | None, Meta(description="Kind of notification: firing, updated, resolved, digest or retraining.")
    ] = None
    severity: Annotated[str | None, Meta(description="Severity of a notification.")] = None
    incident: Annotated[str | None, Meta(description="Incident that a notification is about.")] = None
    detectors: Annotated[
        tuple[str, ...] | None, Meta(description="Detectors whose alarms are part of the incident.")
    ] = None
    started_timestamp_ms: Annotated[
        int | None, Meta(description="Event time at which the incident began.")
    ] = None
    ended_timestamp_ms: Annotated[
        int | None, Meta(description="When the incident ended, by the host's clock; null while it is open.")
    ] = None


def json_schema(document: type[OutcomeDocument | EventDocument]) -> dict[str, Any]:
    """Build the JSON Schema of a topic's records."""
    schema = msgspec.json.schema(document)
    (own,) = schema["$defs"].values()
    title = "Outcome" if document is OutcomeDocument else "Event"
    own = {key: value for key, value in own.items() if key != "title"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{title} of streamwatch, version {SCHEMA_VERSION}",
        **own,
    }
