"""`streamwatch state backfill`: a new state from files of records, from which the daemon goes on.

Files take the way of a log: the daemon's decoders, merge, join, estimators and commits. A file's rows are the
records of a topic; those of several files of a topic follow each other. The state has no positions in Kafka.
Instead it says from which record time on the daemon reads each topic, as it does of topics added to a state.
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
from streamwatch.assembly.topics import build_topics, formats_by_topic, sides
from streamwatch.assembly.warming import warm_up_run
from streamwatch.core.events import Partition
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.daemon import CommitSpec, SourcePositions, State, Topic
from streamwatch.daemon.commits import Commits, Durable
from streamwatch.history.recordings.file import RecordingError
from streamwatch.history.recordings.lines import BadLine, LineRecord, UnusableLines
from streamwatch.history.recordings.partitions import own_time_ms
from streamwatch.history.recordings.recording import Layout, Recording
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

CHUNK: Final = 5_000
"""Records of a topic read at a time."""
_ENDED: Final = 2**62
"""When the fetch was sent that found a topic's files at their end: after everything that was read."""
_UNFINISHED: Final = ".backfilling"
"""End of the name of the directory while it is written: a state that was interrupted is none."""


@dataclass(slots=True)
class Backfilled:
    """Counts of what was read, and the time from which the daemon goes on."""

    directory: Path
    records: dict[str, int] = field(default_factory=dict[str, int])
    """By topic."""
    bad: UnusableLines = field(default_factory=UnusableLines)
    """Lines that were no records; what a decoder refuses is counted in the state, as of a log."""
    until_ms: int = -1
    """Record time (ms) from which the daemon reads its topics."""


class TopicFiles:
    """Records of one topic from files, one after the other, with their record times.

    The record time is the event's own; a record without one comes a millisecond after the one before it.
    Lines that kcat wrote have that of their record.

    Parameters
    ----------
    name
        Name of the topic.
    topic
        How its records are decoded.
    files
        Paths, in the order of time.
    layout
        Format of the files; None finds out.
    until_ms
        Record time of the first record that is left out, with all that follow; None takes all.
    bad
        Counts lines that are no records.
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
        self.ended = False
        self._decoder = topic.decoder
        self._until_ms = until_ms
        self._bad = bad
        self._lines = chain.from_iterable(self._lines_of(file, layout) for file in files)

    def read(self) -> list[LineRecord]:
        """Read the next records; none only at the end."""
        records = list(islice(self._lines, CHUNK))
        found = self._decoder.decode_all(records, [0] * len(records))
        for index, (record, event) in enumerate(zip(records, found, strict=True)):
            if record.timestamp < 0:
                own_ms = own_time_ms(event)
                record.timestamp = self.last_ms + 1 if own_ms is None else max(1, own_ms)
            if self._until_ms is not None and record.timestamp >= self._until_ms:
                self._lines, records = iter(()), records[:index]
                break
            self.last_ms = max(self.last_ms, record.timestamp)
            record.topic, record.partition = self.partition
            record.offset = self.offset
            self.offset += 1
        self.ended = not records
        return records

    def state(self) -> PartitionState:
        """State of the topic, as of a partition that was polled."""
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
    """Make the state of the settings from files by topic.

    Parameters
    ----------
    settings
        Those that the daemon will run with.
    files
        Paths of each topic, in the order of time.
    until_ms
        Record time from which the daemon is to read; None: a millisecond after the newest in the files.
    layout
        Format of the files; None finds out.
    show
        Called with the number of records read so far.

    Raises
    ------
    SettingsError
        State is not on disk, is there already, or a topic is not one of JSON or text.
    RecordingError
        A file cannot be read, or none holds a record.
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
    # No time passes while files are read, so none of them is waited for too long.
    opened = state_opening(within, topics, telemetry, clocks=HostClocks(monotonic=lambda: 0.0))()
    try:
        asyncio.run(_taken(opened, sources, until_ms, show))
    finally:
        opened.store.close()
    result.records = {source.partition.topic: source.offset for source in sources}
    result.until_ms = _end_of(sources, until_ms)
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
    formats = formats_by_topic(settings.topics)
    for name in files:
        if name not in known:
            raise SettingsError(f"expected files of topics {', '.join(known)}, got {name!r}")
        if formats[name].type not in {"json", "text"}:
            raise SettingsError(
                f"topics: expected format json or text of {name}, whose rows are read as JSON, "
                f"got {formats[name].type}"
            )


def _end_of(sources: Sequence[TopicFiles], until_ms: int | None) -> int:
    return max(source.last_ms for source in sources) + 1 if until_ms is None else until_ms


def _show_nothing(durable: Durable) -> None:
    """There is nobody to show a commit to."""
    del durable


async def _taken(
    state: State, sources: Sequence[TopicFiles], until_ms: int | None, show: Callable[[int], None]
) -> None:
    """Feed a state with everything in the files, and commit it."""
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
    for source in sources:  # the daemon meets its partitions anew
        processor.progress.forget(source.partition)
    checkpoint = state.checkpoint
    assert isinstance(checkpoint, Checkpoint)  # noqa: S101 - as `state_opening` makes it
    checkpoint.beginnings.add_topics(
        [source.partition.topic for source in sources], _end_of(sources, until_ms)
    )
    await commits.finish()
    if processor.maintenance is not None:
        await processor.maintenance.stop(None)
