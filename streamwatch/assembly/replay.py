"""Decoders of recorded lines for `streamwatch replay`: with the mappings of the settings, as in `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.topics import envelopes_of, mappings_of, texts_of
from streamwatch.edge.decoders.formats import KINDS, FormatOptions, decoder_spec
from streamwatch.edge.decoders.mapping import (
    InValue,
    KeyOf,
    Paths,
    SidedMapping,
    TimestampUnit,
    notation,
    parse_paths,
    parts_of,
    paths_of,
)
from streamwatch.edge.keys import id_keys
from streamwatch.history.recordings.lines import CsvColumns, RecordedTopic
from streamwatch.settings import Settings, SettingsError

FIELDS = ("id", "model", "prediction", "label", "timestamp", "scores")
"""Fields that `--columns` may name."""


def recorded_topics(
    settings: Settings,
    *,
    model: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: TimestampUnit | None = None,
) -> dict[str, RecordedTopic]:
    """Build side, mapping and decoder of each topic.

    Parameters
    ----------
    settings
        Settings with the mappings.
    model
        Name of the model of all predictions, instead of the mapped one; labels then apply to every model.
    columns
        Name of the column that has a field, by the field's name; instead of the mapped path.
    unit
        Unit of timestamps, instead of the mapped one.

    Raises
    ------
    SettingsError
        If `columns` has a field that is not in `FIELDS`, or no decoder can be built from a mapping.
    """
    paths: dict[str, Any] = {name: f"value.{column}" for name, column in (columns or {}).items()}
    if unknown := paths.keys() - set(FIELDS):
        raise SettingsError(f"--columns: expected fields of {', '.join(FIELDS)}, got {', '.join(unknown)}")
    spaces = topic_properties.namespaces_by_topic(settings.topics)
    mappings, envelopes = mappings_of(settings.topics), envelopes_of(settings.topics)
    texts, formats = texts_of(settings.topics), topic_properties.formats_by_topic(settings.topics)
    folds = specs.folds_scheme(settings)
    topics: dict[str, RecordedTopic] = {}
    for name, side in topic_properties.sides(settings.topics).items():
        changes: dict[str, Any] = dict(paths)
        if model is not None:
            changes["model"] = None if side == "label" else f"={model}"
        if unit is not None:
            changes["timestamp_unit"] = unit
        if "*" in paths.get("prediction", "") and "model" not in changes:  # a column for each model
            changes["model"] = KeyOf(paths["prediction"]) if side != "label" else None
        own = [SidedMapping(each.side, replace(each.mapping, **changes)) for each in mappings[name]]
        try:
            keys = id_keys(spaces[name], digest=False)
            # Recorded lines are JSON, whatever the topic's format, except for text.
            spec = decoder_spec(name, side, own, envelopes[name], keys, folds=folds, texts=texts[name])
            kind = "text" if formats[name].type == "text" else "json"
            decoder = KINDS[kind].build(spec, FormatOptions())
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
        topics[name] = RecordedTopic(spec, decoder)
    return topics


def csv_columns(topics: Mapping[str, RecordedTopic]) -> CsvColumns:
    """Collect the names of the columns that the mappings read, by purpose."""
    mappings = [each for topic in topics.values() for each in topic.mappings]
    return CsvColumns(
        ids=_names(*(each.mapping.id for each in mappings)),
        classes=_names(*(paths_of(each.mapping, each.side) for each in mappings)),
        others=_names(*(each.mapping.model for each in mappings)),
        scores=_names(*(paths_of(each.mapping, "scores") for each in mappings)),
        times=_names(*(each.mapping.timestamp for each in mappings)),
    )


def paths_text(topics: Mapping[str, RecordedTopic]) -> str:
    """List the locations of each topic's fields, a topic per line, for an error."""
    return "\n".join(
        f"looked for in {name}: " + ", ".join(_looked_for(each))
        for name, topic in topics.items()
        for each in topic.mappings
    )


def _looked_for(sided: SidedMapping) -> list[str]:
    slots = ("id", "model", sided.side) if sided.side == "prediction" else ("id", sided.side)
    return [f"{slot} at {notation(paths_of(sided.mapping, slot))}" for slot in slots]


def _names(*fields: Paths | None) -> tuple[str, ...]:
    """Column names of paths in the value; none if one of the paths is elsewhere."""
    singles = [part for paths in fields if paths is not None for part in parts_of(parse_paths(paths))]
    return tuple(
        dict.fromkeys(".".join(each.path) for each in singles if isinstance(each, InValue) and each.path)
    )
