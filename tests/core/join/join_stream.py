"""A pipeline fed by hand: what the tests of the join share."""

from __future__ import annotations

from streamwatch.core.join.activity import used_entries
from streamwatch.core.join.counters import PENDING, RESOLVED
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Invalid, Label, NullRecord, Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.shelf import ColumnShelf

TICK = "tick"
"""Reason of the invalid record by which tests let time pass."""
DAY = 86_400_000


class RecordingEstimatorSet:
    """Takes the part of the estimators, and remembers what it was given."""

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
    """Feeds events in batches, as the merge releases them, and looks at what came of them."""

    def __init__(self, spec=None, monitors=None):
        self.spec = spec or JoinSpec()
        self.monitors = monitors or RecordingEstimatorSet()
        self.pipeline = Pipeline(self.spec, self.monitors, digest_bytes)
        self.shelf = ColumnShelf()

    def feed(self, *events):
        clocked(events, self.pipeline.clock_ms)
        step = self.pipeline.advance(events)
        assert step.taken == len(events)
        assert self.pipeline.identities() == []
        return list(step.outcomes)

    def again(self, spec=None):
        """Restore what this one commits into another stream, under other settings if given."""
        other = Stream(spec or self.spec, self.monitors)
        other.shelf = self.shelf
        self.shelf.commit(self.pipeline)
        self.shelf.restored(other.pipeline)
        return other

    def until(self, record_ms):
        """Let time pass up to here."""
        return self.feed(tick(record_ms))

    def value(self, name, *labels):
        for family in self.pipeline.join_families():
            if family.name == name:
                return dict(family.samples).get(labels)
        raise KeyError(name)

    def counted(self):
        """Every counter that is not 0, by name."""
        counters = {}
        for family in self.pipeline.join_families():
            if family.kind == "counter" and "model" not in family.labels:
                for labels, value in family.samples:
                    if value and TICK not in labels:
                        counters[":".join((family.name.removesuffix("_total"), *labels))] = value
        return counters

    @property
    def counters(self):
        return self.pipeline.join.counters


def clocked(events, clock_ms=-1):
    """Set the clock at each event as the merge does: it never goes back."""
    for event in events:
        clock_ms = event.record_ms = max(clock_ms, event.record_ms)
    return list(events)


def tick(record_ms):
    """A record that does nothing but come at a time."""
    return Invalid("t", 0, 0, TICK, record_ms)


def predict(key="a", predicted_class="x", at=0, model="m", **own):
    return Prediction(key, model, predicted_class, at, **own)


def label(key="a", true_class="x", at=0, model="m", **own):
    return Label(key, true_class, at, model, **own)


def label_for_all(key="a", true_class="x", at=0, **own):
    return Label(key, true_class, at, None, **own)


def null(key="a", at=0, model=None, *, withdraws=True, topic="predictions"):
    return NullRecord(topic, key, model, at, withdraws)


def digested(rows):
    """Entries of a naive join as the compiled one has them: digests for ids."""
    return sorted(
        (digest_bytes([key]), model, state, predicted_class, true_class)
        for key, model, state, predicted_class, true_class in rows
    )


def alive(stream):
    """Entries that still count, as comparable values: live dedup entries and what waits."""
    join = stream.pipeline.join
    floor, rows = int(join.arrays.totals["floor"][0]), []
    for entry in used_entries(join.arrays):
        state = int(entry["state"])
        if state >= RESOLVED and int(entry["earlier_or_generation"]) < floor:
            continue
        digest = b"".join(int(entry[half]).to_bytes(8, "big") for half in ("high", "low"))
        model = join.models.names[entry["model"]] if entry["model"] >= 0 else ""
        predicted, true = int(entry["predicted_class"]), int(entry["true_or_scores"])
        names = join.classes.names
        rows.append(
            (
                digest,
                model,
                state,
                "" if predicted < 0 else names[predicted],
                "" if true < 0 or state == PENDING else names[true],
            )
        )
    return sorted(rows)
