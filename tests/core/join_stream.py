"""A pipeline over a memory store, fed by hand: what the tests of the join share."""

from __future__ import annotations

from streamwatch.core.events import Label, NullRecord, Partition, Prediction, Progress
from streamwatch.core.known import RESOLVED
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec, TimeSpec
from streamwatch.edge.stores.memory import MemoryStore

PREDICTIONS, LABELS = Partition("predictions", 0), Partition("labels", 0)
SIDES = {PREDICTIONS: "prediction", LABELS: "label"}
DAY = 86_400_000


class RecordingMonitors:
    """Stands where the estimators stand, and remembers what it was told."""

    def __init__(self):
        self.folded = []
        self.calls = []
        self.retired = []
        self.seen = {}
        self.records_over_limit = {}

    def fold(self, outcomes):
        self.folded += outcomes
        self.calls.append(len(outcomes))
        for outcome in outcomes:
            self.seen[outcome.model] = None
        return []

    def retire(self, model):
        del self.seen[model]
        self.retired.append((len(self.folded), model))

    def models(self):
        return list(self.seen)

    def families(self):
        return []


class Stream:
    """Feeds events in batches and looks at what came of them."""

    def __init__(self, spec=None, sides=SIDES, time=None, store=None, monitors=None):
        self.spec = spec or JoinSpec()
        self.monitors = monitors or RecordingMonitors()
        self.pipeline = Pipeline(self.spec, time or TimeSpec(), self.monitors, sides)
        self.store = store or MemoryStore()

    def feed(self, *events):
        step = self.pipeline.advance(events, self.store.fetch(self.pipeline.needs(events)))
        self.store.keep(step)
        assert self.pipeline.identities() == []
        return list(step.outcomes)

    def until(self, at_ms):
        """Both sides have been read up to here, with more to come."""
        return self.feed(Progress(*PREDICTIONS, at_ms, False), Progress(*LABELS, at_ms, False))

    def value(self, name, *labels):
        for family in self.pipeline.join_families():
            if family.name == name:
                return dict(family.samples).get(labels)
        raise KeyError(name)

    def counted(self):
        """Every counter that is not 0, by name."""
        counters = {}
        for family in self.pipeline.join_families():
            if family.kind == "counter":
                for labels, value in family.samples:
                    if value:
                        counters[":".join((family.name.removesuffix("_total"), *labels))] = value
        return counters

    @property
    def counters(self):
        return self.pipeline.counters


def predict(key="a", predicted="x", at=0, model="m", **own):
    return Prediction(key, model, predicted, at, **own)


def label(key="a", truth="x", at=0, model="m", **own):
    return Label(key, truth, at, model, **own)


def label_for_all(key="a", truth="x", at=0, **own):
    return Label(key, truth, at, None, **own)


def null(key="a", at=0, model=None, *, withdraws=True, topic="predictions"):
    return NullRecord(topic, key, model, at, withdraws)


def alive(stream):
    """Records that still count, as comparable values: live tombstones and what waits."""
    floor = stream.pipeline._join.predictions.graveyard.floor
    rows = []
    for first in stream.store.records().values():
        record = first
        while record is not None:
            if record.state < RESOLVED or record.generation >= floor:
                rows.append((record.id, record.model or "", record.state, record.predicted, record.truth))
            record = record.next
    return sorted(rows)
