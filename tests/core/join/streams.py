"""One stream through two joins that are cut differently, and through a naive one; and all they say of it."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from streamwatch.core.join import join as compiled_join
from streamwatch.core.join import names
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.series import Holdings
from streamwatch.core.pipeline.pipeline import Pipeline, PipelineState, decoded
from streamwatch.core.records.events import Invalid, Label, Prediction, WrongFold, fold_name
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.keys import digest_bytes
from tests.core.columns import in_columns
from tests.core.join.join_stream import RecordingEstimatorSet, alive, digested
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.naive_reports import naive_activity, naive_alive
from tests.core.join.test_join_model import a_script, a_spec, counts_of, naive_counted
from tests.core.predictions.listing_register import REGISTERS, ListingSpec

LENGTH = 150


def crowded_digests(ids):
    """Digests that nearly all have the same upper half, and homes at the very end of the table."""
    return b"".join(
        (hash_of(id_) << 64 | 0xFFFFFFFF_00000000 | hash_of(id_) % 3).to_bytes(16, "big") for id_ in ids
    )


def hash_of(id_):
    return int.from_bytes(digest_bytes([id_])[:8], "big")


class Reading(NamedTuple):
    """What a pipeline says that a naive join says, too."""

    clock_ms: int
    counters: JoinCounters
    models: dict[str, dict[str, Any]]
    """Activity by name, in their order."""
    holdings: Holdings
    """Without models and tiers."""
    kept: PipelineState
    """What a commit would keep beside the entries."""

    @property
    def fold_streams(self):
        """Label and the one before it, by model with folds."""
        return {model: (each.label, each.before) for model, each in self.kept.join.fold_streams.items()}


class Joined:
    """A pipeline and what came out of it."""

    def __init__(self, make, start_ms):
        self.monitors = RecordingEstimatorSet()
        self.pipeline = make(self.monitors)
        self.pipeline.join.start_ms = start_ms
        self.outcomes, self.retired = [], []
        self.grown = 0

    def feed(self, events):
        events = list(map(copy.copy, events))
        result = self.pipeline.advance(events)
        self._note(result)

    def feed_columns(self, records):
        """Feed records in columns, at times with room made before."""
        taken = 0
        if len(records) % 3 == 0 and self.grown < 4:
            self.grown += 1
            self.pipeline.join.use(self.pipeline.join.with_more_room())
        for step in self.pipeline.steps(records):
            self._note(step)
            if step.work is not None:
                step.work()
            assert taken <= step.taken
            taken = step.taken
        assert taken == len(records)

    def _note(self, result):
        self.retired += [(len(self.outcomes) + after, model) for after, model in result.retired]
        self.outcomes += result.outcomes
        assert self.pipeline.identities() == []
        assert self.monitors.folded == self.outcomes

    @property
    def counters(self):
        return self.pipeline.join.counters

    def read(self):
        """What it says now, read once for all that it is compared with."""
        join = self.pipeline.join
        holdings = join.holdings()
        models = {name: asdict(activity) for name, activity in holdings.models.items()}
        bare = replace(holdings, models={}, tiers={})
        return Reading(self.pipeline.clock_ms, join.counters, models, bare, decoded(self.pipeline.snapshot()))

    def results(self, reading=None, *, reports=True):
        """Everything but the entries and where they lie; with what was read already; reports if wanted."""
        said = self.read() if reading is None else reading
        return (
            said[:-1],
            list(said.models),
            self.outcomes,
            self.retired,
            self.monitors.retired,
            said.kept.predictions,
            said.kept.join.pairing,
            said.fold_streams,
            self.reports() if reports else None,
        )

    def reports(self):
        """What is made of all this for readers; it takes as long as the join does."""
        return (
            self.pipeline.mismatches(),
            self.pipeline.caveats(),
            [each for each in self.pipeline.families() if each.name != "join_entries"],
            self.pipeline.predictions.details(),
        )


def a_case(chance):
    """What all are given: settings, events, where reading began."""
    spec = a_spec(chance)
    events = a_script(chance, LENGTH)
    for event in events:
        if isinstance(event, Invalid):
            event.model = chance.choice([None, "m", "n", "o", "unknown"])
    start_ms = chance.choice([None, 0, 3000])
    if chance.random() < 0.4:
        spec = replace(
            spec, folds=True, folds_share_stream=chance.random() < 0.5, max_models=chance.choice([1, 3, 5, 9])
        )
        events = [folded(event, chance) for event in events]
    return replace(spec, conflicts=chance.choice(["first", "last", "both"])), events, start_ms


def folded(event, chance):
    """Return the event: a prediction of m or o is of a fold, and an invalid record may be of a wrong one."""
    if isinstance(event, Prediction) and event.model != "n" and chance.random() < 0.9:
        event.model = fold_name(event.model, chance.randrange(3))
    elif isinstance(event, Invalid) and chance.random() < 0.2:
        return WrongFold(event.record_ms)
    return event


def crowded_case(chance):
    """A case in which many models predict an id one after another, some of them more than once."""
    spec, events, start_ms = a_case(chance)
    models = [f"model-{number}" for number in range(20)]
    crowded = []
    for event in events[: LENGTH // 6]:
        if isinstance(event, Prediction):
            for model in chance.choices(models, k=chance.choice([1, 12, 24])):
                again = copy.copy(event)
                again.model = model
                again.predicted_class = chance.choice(["x", "y", event.predicted_class])
                crowded.append(again)
        else:
            if isinstance(event, Label) and event.model is not None:
                event.model = chance.choice(models)
            crowded.append(event)
    return replace(spec, max_models=chance.choice([7, 30])), crowded, start_ms


def listened(spec):
    """The same settings with prediction registers: those that settings allow beside `conflicts`."""
    registers = (ListingSpec(),) if spec.conflicts == "last" else REGISTERS
    return replace(spec, prediction_registers=registers)


class Columns:
    """Puts events into columns, by vocabularies that may be too small and are exchanged at times."""

    def __init__(self, chance, digests):
        self.chance, self.digests = chance, digests
        self.vocabulary = self._any_vocabulary()

    def _any_vocabulary(self):
        return Vocabulary(self.chance.choice([1, 3, 1_000, 1_000, 1_000]))

    def of(self, events):
        if self.chance.random() < 0.02:
            self.vocabulary = self._any_vocabulary()
        share = self.chance.choice([0.0, 0.0, 0.2, 1.0])
        return in_columns(
            list(map(copy.copy, events)),
            self.vocabulary,
            digests=False,
            digest=self.digests,
            as_object=lambda _: self.chance.random() < share,
        )


def compare(chance, digests=digest_bytes, case=a_case):
    """Feed a stream drawn by chance to all; compare them wherever cuts meet, and reports at some of these."""
    spec, events, start_ms = case(chance)
    spec = listened(spec)
    one_by_one = Joined(lambda monitors: Pipeline(spec, monitors, digest_bytes), start_ms)
    columns = Joined(lambda monitors: Pipeline(spec, monitors, digests), start_ms)
    naive = NaiveJoin(spec, start_ms)
    most = chance.choice([1, 5, 30, LENGTH])
    records = Columns(chance, digests)
    at = 0
    while at < len(events):
        stop = min(len(events), at + chance.randrange(1, most + 1))
        for event in events[at:stop]:
            one_by_one.feed([event])
            naive.feed(event)
        if chance.random() < 0.7:
            columns.feed_columns(records.of(events[at:stop]))
        else:
            columns.feed(events[at:stop])
        said = columns.read()
        reports = reported(stop, events)
        assert columns.results(said, reports=reports) == one_by_one.results(reports=reports)
        agrees_with(naive, columns, said)
        at = stop
    if digests is digest_bytes:
        assert alive(columns) == digested(naive_alive(naive))
    return len(one_by_one.outcomes)


def reported(stop, events):
    """Whether reports are compared where a cut is: at one in four, and at the end."""
    return stop % 4 == 0 or stop == len(events)


def agrees_with(naive, joined, said):
    """Require that a naive join that was fed the same events says what was read of this one."""
    ours = counts_of(said.counters, list(said.models), said.holdings, said.clock_ms)
    theirs = naive_counted(naive)
    assert {key: value for key, value in ours.items() if value} == {
        key: value for key, value in theirs.items() if value
    }
    assert joined.outcomes == naive.outcomes
    assert joined.retired == naive.retired
    assert joined.monitors.retired == naive.retired_after_outcomes()
    assert said.models == naive_activity(naive)
    expected = {model: (label, before) for model, (_, label, before) in naive.streams.items()}
    assert said.fold_streams == expected


@contextmanager
def cramped():
    """Room for two outcomes at a time, and for four names before those nobody needs are released."""
    before = compiled_join.ROOM, names.MIN_NAMES
    compiled_join.ROOM, names.MIN_NAMES = 2, 4
    try:
        yield
    finally:
        compiled_join.ROOM, names.MIN_NAMES = before


def answers(outcome):
    """Pairs of an outcome, without how many predictions the partners had made."""
    return outcome.pairs and tuple(pair._replace(made=0) for pair in outcome.pairs)
