"""Recordings to replay, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamwatch.core.events import Outcome, Side
from streamwatch.core.merge import MergeSpec
from streamwatch.core.series import Family
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.edge.decoders.formats import DecoderSpec, FormatOptions, json
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.lab.recordings.csv_rows import CsvColumns
from streamwatch.lab.recordings.fitting import RecordedTopic
from streamwatch.lab.recordings.recording import Layout


def default_topics(mapping: TopicMapping | None = None) -> dict[str, RecordedTopic]:
    """Predictions and labels with the default field names, or those of one mapping."""
    sides: dict[str, Side] = {"predictions": "prediction", "labels": "label"}
    found = mapping or TopicMapping()
    specs = [DecoderSpec(name, side, found) for name, side in sides.items()]
    return {spec.topic: RecordedTopic(spec, json.build(spec, FormatOptions())) for spec in specs}


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """Recordings to replay, and how; the defaults are the daemon's.

    Attributes
    ----------
    sources
        Paths, or `-` for standard input; each is a partition of its own.
    layout
        None finds out.
    topics
        How lines are decoded, by topic in the order of the settings.
    topic
        The topic of every line; None: kcat's lines say, and of others the mapping that fits.
    closed
        Whether lines of kcat must be of one of `topics`.
    columns
        What the header of a CSV file is expected to name.
    trace, trace_comparisons
        CSV files to write, of every outcome and of every pair of outcomes, or None.
    seen
        Told all outcomes in the order in which they are evaluated, or None.
    look
        Told how many outcomes were evaluated, and asked for nothing, or None; it may ask for all estimates.
    """

    sources: Sequence[str | Path]
    layout: Layout | None = None
    topics: Mapping[str, RecordedTopic] = field(default_factory=default_topics)
    topic: str | None = None
    closed: bool = False
    columns: CsvColumns = field(default_factory=CsvColumns)
    join: JoinSpec = field(default_factory=JoinSpec)
    merge: MergeSpec = field(default_factory=MergeSpec)
    monitors: MonitorsSpec = field(default_factory=MonitorsSpec)
    trace: str | Path | None = None
    trace_comparisons: str | Path | None = None
    seen: Callable[[Sequence[Outcome]], None] | None = None
    look: Callable[[int, Callable[[], Sequence[Family]]], None] | None = None
