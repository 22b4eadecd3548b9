"""`streamwatch state backfill`: makes a new state from files of records, which the daemon continues.

Records of files are evaluated as those of a log, by the daemon's decoders, merge, join, estimators and
commits. Several files of a topic are read one after the other. The state has no positions in Kafka; instead
it stores the record time from which the daemon reads each topic, as for topics added to a state.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Final

from streamwatch.assembly.state import HostClocks, state_opening
from streamwatch.assembly.topics import build_topics, sides, topics_by_name
from streamwatch.assembly.warming import warm_up_run
from streamwatch.core.metrics.series import Family
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Partition, is_decodable
from streamwatch.daemon import CommitSpec, SourcePositions, State, Topic
from streamwatch.daemon.commits import Commits, Durable
from streamwatch.edge.receivers.texts import iso
from streamwatch.history.recordings.file import RecordingError
from streamwatch.history.recordings.lines import BadLine, LineRecord, UnusableLines
from streamwatch.history.recordings.partitions import own_time_ms
from streamwatch.history.recordings.recording import Layout, Recording
from streamwatch.inspection.streams import are_misread
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

CHUNK: Final = 5_000
"""Records of a topic read at a time."""
_ENDED: Final = 2**62
"""`at_end_ms` of a topic whose files are read: later than every record."""
_UNFINISHED: Final = ".backfilling"
"""Suffix of the directory's name while it is written, so that an interrupted backfill is no state."""


@dataclass(slots=True)
class Backfilled:
    """Result of a backfill: counts of records, and the time from which the daemon reads its topics."""

    directory: Path
    """Directory of the new state."""
    records: dict[str, int] = field(default_factory=dict[str, int])
    """Records by topic, including invalid ones, which are counted in the state."""
    bad: UnusableLines = field(default_factory=UnusableLines)
    """Lines that are not records."""
    until_ms: int = -1
    """Record time (ms) from which the daemon reads its topics."""
    families: Sequence[Family] = ()
    """Metrics of the join at the end."""
    warnings: list[str] = field(default_factory=list[str])
    """Texts on topics whose records have no times, are out of order, or have times that are misread."""


class TopicFiles:
    """Records of one topic from files, one after the other, with their record times.

    The record time of a line written by kcat is that of its record. Other lines have their event time;
    without one, a millisecond more than the largest so far.

    Parameters
    ----------
    name
        Name of the topic.
    topic
        Side and decoder of the topic.
    files
        Paths, in the order of time.
    layout
        Format of the files; None: detected for each file.
    until_ms
        Record time at which reading stops, before the first record at or after it; None: at the end.
    bad
        Counts lines that are not records.
    """

    def __init__(
        self,
        name: str,
        topic: Topic,
        files: Sequence[Path],
        layout: Layout | None,
        until_ms: int | None,
        bad: UnusableLines,
    ) -> None:
        self.partition = Partition(name, 0)
        self.last_ms = 0
        """Largest record time so far."""
        self.offset = 0
        """Number of records so far."""
        self.untimed = self.back_in_time = 0
        """Numbers of records without a time, and of those with an earlier time than one before them."""
        self.ended = False
        self._decoder = topic.decoder
        self._until_ms = until_ms
        self._bad = bad
        self._lines = chain.from_iterable(self._lines_of(file, layout) for file in files)

    def read(self) -> list[LineRecord]:
        """Read the next records, up to `CHUNK`; empty only at the end."""
        records = list(islice(self._lines, CHUNK))
        found = self._decoder.decode_all(records, [0] * len(records))
        for index, (record, event) in enumerate(zip(records, found, strict=True)):
            if record.timestamp < 0:
                own_ms = own_time_ms(event)
                self.untimed += own_ms is None and is_decodable(event)
                record.timestamp = self.last_ms + 1 if own_ms is None else max(1, own_ms)
            if self._until_ms is not None and record.timestamp >= self._until_ms:
                self._lines, records = iter(()), records[:index]
                break
            self.back_in_time += record.timestamp < self.last_ms
            self.last_ms = max(self.last_ms, record.timestamp)
            record.topic, record.partition = self.partition
            record.offset = self.offset
            self.offset += 1
        self.ended = not records
        return records

    def warnings(self) -> Iterator[str]:
        """Yield texts on times for which the order of these records is probably not that of the log."""
        name = self.partition.topic
        if self.untimed:
            yield (
                f"{self.untimed:,} records of {name} have no time: expected one where the mapping looks for "
                "the timestamp, as files are merged by it."
            )
        if self.back_in_time:
            yield (
                f"{self.back_in_time:,} records of {name} have an earlier time than one before them: files "
                "are read in the order of their names and lines."
            )
        if are_misread([self.last_ms]):
            yield f"The last time of {name} is in {iso(self.last_ms)[:7]}: is its timestamp_unit right?"

    def state(self) -> PartitionState:
        """Return the state of the topic's only partition, as a poll reports it."""
        return PartitionState(self.offset, self.offset, self.ended, _ENDED if self.ended else None)

    def _lines_of(self, file: Path, layout: Layout | None) -> Iterator[LineRecord]:
        with Recording(file, layout) as recording:
            for line in recording.records():
                if isinstance(line, BadLine):
                    self._bad.add(line)
                else:
                    yield line


def backfill(
    settings: Settings,
    files: Mapping[str, Sequence[Path]],
    *,
    until_ms: int | None = None,
    layout: Layout | None = None,
    show: Callable[[int], None] = lambda _: None,
) -> Backfilled:
    """Make a new state in `state.directory` from files by topic.

    Parameters
    ----------
    settings
        Settings that the daemon will run with.
    files
        Paths of each topic's files, in the order of time.
    until_ms
        Record time from which the daemon is to read; None: a millisecond after the newest in the files.
    layout
        Format of the files; None: detected for each file.
    show
        Called with the number of records read so far.

    Raises
    ------
    SettingsError
        If the state is not on disk or exists, outcomes are published, or a topic is unknown or of a format
        other than JSON and text.
    RecordingError
        If a file cannot be read, or none contains a record.
    """
    directory = settings.state.directory
    _check(settings, files)
    building = directory.with_name(directory.name + _UNFINISHED)
    if building.exists():
        shutil.rmtree(building)
    # Labels of predictions before the first file are unmatched, as at the beginning of a log.
    kafka = settings.kafka.model_copy(update={"start_from": "earliest"})
    state = settings.state.model_copy(update={"directory": building})
    within = settings.model_copy(update={"kafka": kafka, "state": state})
    topics = build_topics(within)
    telemetry = Telemetry(settings.log.level, settings.log.format)
    warm_up_run(within)
    result = Backfilled(directory)
    sources = [
        TopicFiles(name, topics[name], files[name], layout, until_ms, result.bad)
        for name in topics
        if name in files
    ]
    # No time passes while files are read, so that the merge gives up waiting for none of them.
    opened = state_opening(within, topics, telemetry, clocks=HostClocks(monotonic=lambda: 0.0))()
    try:
        result.families = asyncio.run(_taken(opened, sources, until_ms, show))
    finally:
        opened.store.close()
    result.records = {source.partition.topic: source.offset for source in sources}
    result.until_ms = _end_of(sources, until_ms)
    result.warnings = [warning for source in sources for warning in source.warnings()]
    building.rename(directory)
    return result


def _check(settings: Settings, files: Mapping[str, Sequence[Path]]) -> None:
    directory, known = settings.state.directory, sides(settings.topics)
    if settings.state.kind != "rocksdb":
        raise SettingsError(f"state.kind: expected rocksdb for a backfill, got {settings.state.kind}")
    if settings.outcomes.topic is not None:
        raise SettingsError("outcomes.topic: expected none in a backfill, which publishes no outcomes")
    if directory.exists() and any(directory.iterdir()):
        raise SettingsError(f"state.directory: expected no state in {directory} before a backfill, got one")
    topics = topics_by_name(settings.topics)
    for name in files:
        if name not in known:
            raise SettingsError(f"expected files of topics {', '.join(known)}, got {name!r}")
        if topics[name].format.type not in {"json", "text"}:
            raise SettingsError(
                f"topics: expected format json or text of {name}, whose rows are read as JSON, "
                f"got {topics[name].format.type}"
            )


def _end_of(sources: Sequence[TopicFiles], until_ms: int | None) -> int:
    return max(source.last_ms for source in sources) + 1 if until_ms is None else until_ms


def _show_nothing(durable: Durable) -> None:
    """Do nothing: a backfill shows no commits."""
    del durable


async def _taken(
    state: State, sources: Sequence[TopicFiles], until_ms: int | None, show: Callable[[int], None]
) -> Sequence[Family]:
    """Evaluate all records of the files in the order of record time, with commits in between.

    Returns the metrics of the join.
    """
    processor = state.processor
    spec = CommitSpec(events=20_000)
    commits = Commits(state, lambda _: SourcePositions(), spec, _show_nothing, behind=lambda: True)
    left = list(sources)
    while left:
        source = min(left, key=lambda each: each.last_ms)
        records = source.read()
        if not records:
            left.remove(source)
        polled = {source.partition: records} if records else {}
        await processor.receive(Poll(polled, {each.partition: each.state() for each in sources}))
        while processor.has_ready:
            await processor.make_room()
            processor.evaluate()
            await commits.settle(soon=False)
        if processor.maintenance is not None:
            processor.maintenance.schedule_next()
        show(sum(each.offset for each in sources))
    if not any(source.offset for source in sources):
        raise RecordingError("expected records in the files, got none")
    for source in sources:  # partitions in Kafka are unknown to the state
        processor.progress.forget(source.partition)
    checkpoint = state.checkpoint
    assert isinstance(checkpoint, Checkpoint)  # noqa: S101 - as `state_opening` makes it
    checkpoint.beginnings.add_topics(
        [source.partition.topic for source in sources], _end_of(sources, until_ms)
    )
    await commits.finish()
    if processor.maintenance is not None:
        await processor.maintenance.stop(None)
    return checkpoint.pipeline.join_families()
