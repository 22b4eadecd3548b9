"""What the pure core makes of an audit: no disk, no Kafka, no crash."""

from __future__ import annotations

from collections.abc import Iterable

from streamwatch.assembly import specs
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Alarm
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.settings import Settings
from tests.faults.auditing import Frame


class Replay:
    """Pipeline and estimators in memory, fed with frames in order."""

    def __init__(self, settings: Settings, frames: Iterable[Frame]) -> None:
        self.monitors = EstimatorSet(specs.monitors_spec(settings))
        self.pipeline = Pipeline(specs.join_spec(settings), self.monitors, bytes_of_keys)
        self.alarms: list[Alarm] = []
        self.events = 0
        for frame in frames:
            self._feed(frame)

    def _feed(self, frame: Frame) -> None:
        pipeline, events = self.pipeline, frame.decoded()
        step = pipeline.advance(events)
        self.alarms += step.alarms
        self.events += len(events)
