"""Over a durable store the join equals the naive one, wherever commits, crashes and restarts fall.

Events go to both. What was not committed is played again after a crash, as the log would be: to the machine
it is as if it came for the first time; the naive join never noticed.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Invalid, Label, NullRecord, Prediction
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon.source_positions import POSITIONS, SourcePositions
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.rocksdb import RocksStore
from tests.core.join.durable_streams import cramped_logs
from tests.core.join.join_stream import tick
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.test_join_model import counted, naive_counted
from tests.edge.stores.rocksdb.stream import rocks_spec
from tests.faults.simulation.disk import Disk, Troubles
from tests.faults.simulation.recorder import Recorder
from tests.tiers import examples

SMALL = st.sampled_from([0, 1, 2, 5, 1000, 1000])
SECONDS = st.sampled_from([0, 1000, 2500, 5000, 20_000])
SPECS = st.builds(
    JoinSpec,
    horizon_ms=st.sampled_from([1000, 5000, 20_000]),
    early_horizon_ms=SECONDS,
    dedup_horizon_ms=SECONDS,
    max_pending=SMALL,
    max_labels=SMALL,
    max_dedup_entries=SMALL,
    assume=st.sampled_from([None, "x"]),
    order=st.sampled_from(["resolution", "prediction_time"]),
    reorder_window_ms=st.sampled_from([0, 700, 3000]),
    max_reordered=SMALL,
    retain_unmatched=st.booleans(),
    max_models=st.sampled_from([1, 2, 3]),
    conflicts=st.sampled_from(["first", "last", "both"]),
)
KEYS = st.integers(0, 7).map(str)
MODELS = st.sampled_from("mno")
CLASSES = st.sampled_from("xy")
STEPS = st.sampled_from([0, 0, 300, 1000, 4000])
PLANNED = MonitorsSpec()


class Life:
    """From one opening of the store to the next."""

    def __init__(self, join: JoinSpec, store, journal: int) -> None:
        self.store = store
        self.monitors = Recorder()
        self.pipeline = Pipeline(join, self.monitors, digest_bytes)
        self.checkpoint = Checkpoint(self.pipeline, self.monitors, PLANNED, journal)
        self.checkpoint.restore(store.load())

    @property
    def counters(self):
        return self.pipeline.join.counters

    def feed(self, event) -> None:
        self.checkpoint.take(self.pipeline.advance([event]))
        assert self.pipeline.identities() == []


class DurableJoin(RuleBasedStateMachine):
    """Over a simulated disk."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.since_commit: list = []
        self.disk = Disk(Random(0), Troubles())
        self.life: Life | None = None

    @initialize(join=SPECS, journal=st.sampled_from([1, 5, 1000]))
    def begin(self, join, journal) -> None:
        self.join = join
        self.journal = journal
        self.naive = NaiveJoin(self.join)
        self.life = self.begun()

    def begun(self):
        return Life(self.join, self.opened(), self.journal)

    def opened(self):
        return self.disk.open()

    def feed(self, event) -> None:
        self.naive.feed(event)
        self.since_commit.append(event)
        self.life.feed(event)

    @rule(key=KEYS, model=MODELS, predicted_class=CLASSES, step=STEPS, own=st.sampled_from([None, 0, 900]))
    def predict(self, key, model, predicted_class, step, own) -> None:
        """A champion, a challenger, a duplicate or a conflict: whatever the id has seen before."""
        self.now += step
        stamp = None if own is None else max(0, self.now - own)
        self.feed(Prediction(key, model, predicted_class, self.now, stamp, {"x": 0.5} if own else None))

    @rule(key=KEYS, model=MODELS, true_class=CLASSES, step=STEPS)
    def label(self, key, model, true_class, step) -> None:
        """Early, on time, late, repeated or corrected."""
        self.now += step
        self.feed(Label(key, true_class, self.now, model))

    @rule(key=KEYS, true_class=CLASSES)
    def label_for_all(self, key, true_class) -> None:
        self.feed(Label(key, true_class, self.now))

    @rule(key=KEYS, model=st.none() | MODELS)
    def withdraw(self, key, model) -> None:
        self.feed(NullRecord("predictions", key, model, self.now, withdraws=True))

    @rule(reason=st.sampled_from(["invalid_json", "no_id"]))
    def reject(self, reason) -> None:
        self.feed(Invalid("predictions", 0, 0, reason, self.now))

    @rule(step=st.sampled_from([500, 2000, 8000, 60_000]))
    def let_time_pass(self, step) -> None:
        """What waits expires, models retire, dedup entries are dropped."""
        self.now += step
        self.feed(tick(self.now))

    @rule()
    def commit(self) -> None:
        with cramped_logs():
            changes = self.life.checkpoint.changes({POSITIONS: SourcePositions().encode()})
        self.life.store.commit(changes)
        self.life.store.flush()
        self.since_commit = []

    @rule()
    def crash(self) -> None:
        """What was not committed is gone, and comes again."""
        self.lose()
        self.life = self.begun()
        for event in self.since_commit:
            self.life.feed(event)

    def lose(self) -> None:
        self.disk.lose_power()

    @precondition(lambda self: not self.since_commit)
    @rule()
    def restart(self) -> None:
        self.life.store.close()
        self.life = self.begun()

    @invariant()
    def it_equals_the_naive_join(self) -> None:
        if self.life is None:
            return
        ours, theirs = counted(self.life), naive_counted(self.naive)
        assert {key: value for key, value in ours.items() if value} == {
            key: value for key, value in theirs.items() if value
        }
        assert self.life.monitors.outcomes == self.expected()

    def expected(self):
        """Outcomes by model, of those that have not retired since."""
        begin = {model: position for position, model in self.naive.retired}
        outcomes: dict[str, list] = {}
        for position, outcome in enumerate(self.naive.outcomes):
            if position >= begin.get(outcome.model, 0):
                outcomes.setdefault(outcome.model, []).append(outcome)
        return outcomes


class DurableJoinOnDisk(DurableJoin):
    """Over RocksDB."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="state-machine-"))

    def opened(self):
        return RocksStore.open(rocks_spec(self.directory / "state"))

    def lose(self) -> None:
        self.life.store.close()

    def teardown(self) -> None:
        if self.life is not None:
            self.life.store.close()
        shutil.rmtree(self.directory)


TestDurableJoin = DurableJoin.TestCase
TestDurableJoin.settings = settings(max_examples=examples(1.5), stateful_step_count=60)
TestDurableJoinOnDisk = DurableJoinOnDisk.TestCase
TestDurableJoinOnDisk.settings = settings(max_examples=examples(0.8), stateful_step_count=60)
