"""Deliveries of every life, one after another, and the ledger that outlives them."""

from __future__ import annotations

from collections import Counter
from math import inf
from random import Random

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.ports import RecoveredState
from streamwatch.daemon.alerting import ALARMS, AlertDecisions, Alerting
from streamwatch.daemon.deliveries import Deliveries
from tests.faults.simulation.checks import a_pipeline
from tests.faults.simulation.disk import Disk
from tests.faults.simulation.ledger import IDENTITY, Ledger
from tests.faults.simulation.loop import VirtualLoop
from tests.faults.simulation.receivers import SimReceiver
from tests.faults.simulation.workload import Plan


class Telling:
    """Who is told of alarms in a simulation.

    Parameters
    ----------
    seed
        Of what receivers do.
    plan
        Who they are, and what they hear of.
    disk
        That knows what was decided.
    """

    def __init__(self, seed: int, plan: Plan, disk: Disk) -> None:
        self._plan = plan
        self._disk = disk
        self._chance = Random(f"{seed} receivers")
        self._well_from = inf
        self._patient = False
        self.ledger = Ledger(plan.alerts, disk)
        self._deliveries: Deliveries | None = None

    @property
    def deliveries(self) -> Deliveries:
        """Of this life."""
        assert self._deliveries is not None
        return self._deliveries

    def heal(self, now: float) -> None:
        """Faults stop, at once or soon."""
        self._well_from = now + self._chance.choice((0.0, 10.0))

    def begin(self, life: int, loop: VirtualLoop) -> None:
        """A process; once faults stop, it waits until everything is told, and before that maybe."""
        self._patient = self._well_from < inf or self._chance.random() < 0.5
        tempers = self._plan.alerts.receivers_in(life)

        def well() -> bool:
            return loop.time() >= self._well_from

        def now_ms() -> int:
            return self._plan.clock_ms(loop.time())

        def took() -> None:
            if self._chance.random() < self._plan.alerts.strikes:
                loop.crash_within(self._chance.choice((4, 40)))

        receivers = [SimReceiver(temper, self.ledger, self._chance, well, took) for temper in tempers]
        self.ledger.begins([temper.name for temper in tempers], now_ms)
        spec = self._plan.alerts.delivery
        self._deliveries = Deliveries(receivers, spec, self.ledger.heard, now_ms, self._chance.random)

    def end(self, how: str) -> None:
        """Of the process."""
        self.ledger.ends(self.deliveries.families(), how)

    def alerting(self, checkpoint: Checkpoint, saved: RecoveredState) -> Alerting:
        """For a state that was opened."""
        book = AlarmBook(self._plan.alerts.spec, IDENTITY)
        if ALARMS in saved.sections:
            book.restore(saved.sections[ALARMS])
        monitors = checkpoint.monitors
        parts = book, self.deliveries, lambda: monitors, self.ledger.now_ms, saved.outbox
        return Observed(self.ledger, checkpoint, *parts)

    @property
    def waits(self) -> bool:
        """Whether this life has something left to tell."""
        return self._patient and bool(self._disk.images[-1].saved.outbox)

    def audit(self) -> None:
        """At the end, when everything had its time."""
        pipeline, recorder, checkpoint = a_pipeline(self._plan)
        checkpoint.restore(self._disk.images[-1].saved)
        ordinals = {
            (model, detector): errors // every
            for model, errors in recorder.errors.items()
            for detector, every in recorder.detectors.items()
        }
        # A model that retires takes its errors with it.
        self.ledger.audit(None if pipeline.join.counters.models_retired else Counter(ordinals))


class Observed(Alerting):
    """Alerting whose every decision goes into the ledger."""

    def __init__(self, ledger: Ledger, checkpoint: Checkpoint, *parts) -> None:
        super().__init__(*parts)
        self._ledger = ledger
        self._checkpoint = checkpoint

    def begin(self) -> None:
        self._ledger.opened(self._checkpoint.commits)
        super().begin()

    def decide(self, *arguments, **more) -> AlertDecisions:
        outgoing = super().decide(*arguments, **more)
        self._ledger.decided(self._checkpoint.commits + 1, outgoing)
        return outgoing
