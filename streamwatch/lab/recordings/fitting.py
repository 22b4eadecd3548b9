"""Which topic a recorded line would have been on, and the event it then is: the mapping that fits decides.

A line of a topic that is known is decoded as that topic's records are. Any other is a prediction if a
prediction topic's mapping finds one in it, a label if a label topic's does, and an outcome if both do. A
class that a mapping names as a constant (`label: =fraud`) is found in every line, so it makes no outcome:
such a line is a prediction if it holds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from streamwatch.core.events import Decoded, Invalid, Label, Prediction, Side, is_decodable
from streamwatch.core.ports import Decoder
from streamwatch.edge.decoders.formats import DecoderSpec, FormatOptions, json
from streamwatch.edge.decoders.joined_text import fixed_text
from streamwatch.edge.decoders.mapping import SidedMapping, places_of
from streamwatch.edge.decoders.trees import sided
from streamwatch.lab.recordings.lines import LineRecord


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """A topic, and the decoder of its records."""

    spec: DecoderSpec
    decoder: Decoder

    @property
    def side(self) -> Side:
        """Side of the topic."""
        return self.spec.side

    @property
    def mappings(self) -> Sequence[SidedMapping]:
        """Every mapping of the topic, those of predictions first."""
        return self.spec.mappings or sided(self.spec.side, self.spec.mapping)

    def has_constant_class(self, side: Side) -> bool:
        """Tell whether a mapping names the class of every record."""
        places = [places_of(each.mapping, each.side) for each in self.mappings if each.side == side]
        return any(fixed_text(each) is not None for each in places)


class Both(NamedTuple):
    """A line that holds a prediction and its label."""

    prediction: Prediction
    label: Label


Fitted: TypeAlias = "Decoded | Both"

_PERHAPS_A_LABEL: Final = frozenset(
    {
        "missing_model",
        "missing_model_part",
        "missing_prediction",
        "missing_prediction_part",
        "unknown_kind",
    }
)


class Fitting:
    """Decodes lines by the topics of the settings.

    Parameters
    ----------
    topics
        By name, in the order of the settings.
    """

    def __init__(self, topics: Mapping[str, RecordedTopic]) -> None:
        self._topics = topics
        sides = (("prediction", "both"), ("label",))
        self._predictions, self._labels = (
            [topic for topic in topics.values() if topic.side in side] for side in sides
        )
        # Asked for every line, so the mappings are looked at once.
        self._constant_predictions = _constant(self._predictions, "prediction")
        self._constant_labels = _constant(self._labels, "label")
        # Without asking for a model: tells a label from a prediction that lacks one.
        self._nameless = [
            json.build(
                replace(topic.spec, mapping=replace(topic.spec.mapping, model="=any")), FormatOptions()
            )
            for topic in topics.values()
            if topic.side != "label" and not topic.spec.mappings
        ]

    def decode(self, records: Sequence[LineRecord], topic: str | None) -> list[Fitted]:
        """The event of each line; `topic` None: of whichever topic fits it."""
        if topic is not None:
            return list(self._topics[topic].decoder.decode_all(records, [0] * len(records)))
        predictions = _first_fit(self._predictions, records)
        labels = _first_fit(self._labels, records)
        return [
            self._chosen(record, *found, *other)
            for record, found, other in zip(records, predictions, labels, strict=True)
        ]

    def _chosen(
        self,
        record: LineRecord,
        event: Decoded,
        by: RecordedTopic | None,
        other: Decoded,
        other_by: RecordedTopic | None,
    ) -> Fitted:
        """One of what the prediction topics and the label topics make of a line, or both."""
        if type(event) is Invalid:
            return self._if_no_prediction(record, event, other)
        if type(event) is not Prediction or type(other) is not Label or by is None or other_by is None:
            return event
        if id(other_by) in self._constant_labels:
            return event
        return other if id(by) in self._constant_predictions else Both(event, other)

    def _if_no_prediction(self, record: LineRecord, refused: Invalid, other: Decoded) -> Decoded:
        """The label a line holds instead, or the better of two reasons why it is of no use."""
        reason = refused.reason
        if reason not in _PERHAPS_A_LABEL or (reason == "missing_model" and self._lacks_a_model(record)):
            return refused
        if type(other) is not Invalid or other.reason != "missing_label":
            return other
        if reason != "unknown_kind":
            refused.reason = "neither_prediction_nor_label"
        return refused

    def _lacks_a_model(self, record: LineRecord) -> bool:
        return any(type(probe.decode(record, 0)) is Prediction for probe in self._nameless)


def _constant(topics: Sequence[RecordedTopic], side: Side) -> frozenset[int]:
    """Identities of the topics that name a constant class of this side."""
    return frozenset(id(topic) for topic in topics if topic.has_constant_class(side))


def _first_fit(
    topics: Sequence[RecordedTopic], records: Sequence[LineRecord]
) -> list[tuple[Decoded, RecordedTopic | None]]:
    """What the first topic that can makes of each record; the first one's reason where none can."""
    found: list[tuple[Decoded, RecordedTopic | None]] = []
    for topic in topics:
        if not found:
            found = [(event, topic) for event in topic.decoder.decode_all(records, [0] * len(records))]
            continue
        left = [i for i, (event, _) in enumerate(found) if not is_decodable(event)]
        events = topic.decoder.decode_all([records[i] for i in left], [0] * len(left))
        for i, event in zip(left, events, strict=True):
            if is_decodable(event):
                found[i] = event, topic
    if not found:
        return [(Invalid("", 0, record.offset, "missing_label"), None) for record in records]
    return found
