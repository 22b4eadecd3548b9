"""Mappings and envelopes of the settings → what decoders are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from streamwatch.edge.decoders.envelopes import KINDS as ENVELOPES
from streamwatch.edge.decoders.envelopes import EnvelopeKind
from streamwatch.edge.decoders.mapping import (
    ClassOfLargest,
    ClassOfScore,
    KindRule,
    Places,
    ScoreArray,
    SidedMapping,
    TopicMapping,
)
from streamwatch.settings import SettingsError
from streamwatch.settings.mapping import (
    LargestSection,
    MappingSection,
    PredictedScoreSection,
    ScoreArraySection,
    ScoreSection,
)
from streamwatch.settings.topics import TopicSection, TopicsSection


def mappings_of(section: TopicsSection) -> dict[str, tuple[SidedMapping, ...]]:
    """Mappings of all topics, those of predictions first."""
    found: dict[str, tuple[SidedMapping, ...]] = {}
    both: tuple[tuple[Literal["prediction", "label"], Sequence[TopicSection]], ...] = (
        ("prediction", section.predictions),
        ("label", section.labels),
    )
    for side, topics in both:
        for topic in topics:
            own = (topic_mapping(each, topic.envelope) for each in topic.all_mappings)
            found[topic.name] = (
                *found.get(topic.name, ()),
                *(SidedMapping(side, mapping) for mapping in own),
            )
    return found


def envelopes_of(section: TopicsSection) -> dict[str, EnvelopeKind | None]:
    """Envelope of each topic's records.

    Raises
    ------
    SettingsError
        There is no such envelope.
    """
    return {topic.name: _envelope(topic.envelope) for topic in (*section.predictions, *section.labels)}


def _envelope(name: str | None) -> EnvelopeKind | None:
    if name is not None and name not in ENVELOPES:
        raise SettingsError(f"topics: envelope: expected one of {', '.join(ENVELOPES)}, got {name!r}")
    return None if name is None else ENVELOPES[name]


def topic_mapping(section: MappingSection, envelope: str | None = None) -> TopicMapping:
    """One mapping of a topic; what it does not say is as its envelope has it."""
    kind, known = section.kind, _envelope(envelope)
    defaults = {} if known is None else dict(known.defaults)
    mapping = TopicMapping(
        id=section.id,
        model=section.model,
        prediction=_predicted(section.prediction),
        label=_scored(section.label) if isinstance(section.label, ScoreSection) else section.label,
        timestamp=section.timestamp,
        timestamp_unit=section.timestamp_unit,
        scores=_scores(section.scores),
        fold=section.fold,
        segments=dict(section.segments),
        classes=dict(section.classes),
        kind=KindRule(kind.field, kind.prediction, kind.label) if kind else None,
        when=dict(section.when),
        optional=section.optional,
    )
    said = section.model_fields_set
    unsaid: dict[str, Any] = {field: place for field, place in defaults.items() if field not in said}
    return replace(mapping, **unsaid)


def _scored(section: ScoreSection) -> ClassOfScore:
    return ClassOfScore(section.score, section.threshold, section.above, section.below)


def _predicted(
    written: Places | PredictedScoreSection | LargestSection,
) -> Places | ClassOfScore | ClassOfLargest:
    if isinstance(written, LargestSection):
        return ClassOfLargest(written.largest, written.classes)
    if isinstance(written, PredictedScoreSection):
        return replace(_scored(written), probability=written.probability)
    return written


def _scores(written: str | ScoreArraySection | None) -> str | ScoreArray | None:
    return ScoreArray(written.array, written.classes) if isinstance(written, ScoreArraySection) else written
