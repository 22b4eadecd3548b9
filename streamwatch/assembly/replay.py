"""How `streamwatch replay` decodes lines: with the mappings of the settings, as `run` decodes records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamwatch.assembly import specs
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import InValue, TimestampUnit, TopicMapping, parse_field_location
from streamwatch.edge.keys import id_keys
from streamwatch.lab.fitting import RecordedTopic
from streamwatch.lab.recorded import CsvColumns
from streamwatch.settings import Settings, SettingsError

FIELDS = ("id", "model", "prediction", "label", "timestamp", "scores")
"""What `--columns` may name."""


def recorded_topics(
    settings: Settings,
    *,
    model: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: TimestampUnit | None = None,
) -> dict[str, RecordedTopic]:
    """Side, mapping and decoder of each topic.

    Parameters
    ----------
    settings
        Whatever the operator chose.
    model
        The model of every prediction; labels are then for every model.
    columns
        Names of fields in the value, by field, in place of those of the mappings.
    unit
        Unit of timestamps, in place of that of the mappings.

    Raises
    ------
    SettingsError
        A field, constant or alias is no valid name.
    """
    places = {name: f"value.{column}" for name, column in (columns or {}).items()}
    if unknown := places.keys() - set(FIELDS):
        raise SettingsError(f"--columns: expected fields of {', '.join(FIELDS)}, got {', '.join(unknown)}")
    spaces = specs.namespaces(settings.topics)
    mappings = specs.mappings(settings.topics)
    folds = specs.folds_scheme(settings)
    topics: dict[str, RecordedTopic] = {}
    for name, side in specs.sides(settings.topics).items():
        mapping = replace(mappings[name], **places)
        if model is not None:
            mapping = replace(mapping, model=None if side == "label" else f"={model}")
        if unit is not None:
            mapping = replace(mapping, timestamp_unit=unit)
        try:
            keys = id_keys(spaces[name], digest=False)
            # Lines are JSON, whatever the records they were written from.
            spec = DecoderSpec(name, side, mapping, keys, folds=folds)
            decoder = KINDS["json"].build(spec, FormatOptions())
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
        topics[name] = RecordedTopic(side, mapping, decoder)
    return topics


def csv_columns(topics: Mapping[str, RecordedTopic]) -> CsvColumns:
    """The columns that the mappings look for."""
    mappings = [(topic.side, topic.mapping) for topic in topics.values()]
    classes = [
        place
        for side, mapping in mappings
        for place in (
            (mapping.prediction, mapping.label)
            if side == "both"
            else (mapping.prediction if side == "prediction" else mapping.label,)
        )
    ]
    return CsvColumns(
        ids=_names(*(mapping.id for _, mapping in mappings)),
        classes=_names(*classes),
        others=_names(*(mapping.model for _, mapping in mappings)),
        scores=_names(*(mapping.scores for _, mapping in mappings)),
    )


def places_text(topics: Mapping[str, RecordedTopic]) -> str:
    """List the locations of each topic's fields, for a person whose lines had none there."""
    return "\n".join(
        f"looked for in {name}: " + ", ".join(_looked_for(topic.side, topic.mapping))
        for name, topic in topics.items()
    )


def _looked_for(side: str, mapping: TopicMapping) -> list[str]:
    shown = [f"id at {mapping.id}"]
    if side != "label":
        shown += [f"model at {mapping.model}", f"prediction at {mapping.prediction}"]
    if side != "prediction":
        shown.append(f"label at {mapping.label}")
    return shown


def _names(*places: str | None) -> tuple[str, ...]:
    """Column names of places in the value; none if one of the places is elsewhere."""
    parsed = [parse_field_location(place) for place in places if place is not None]
    return tuple(dict.fromkeys(".".join(place.path) for place in parsed if isinstance(place, InValue)))
