"""Estimators that forget nothing: a snapshot is the list of outcomes, every so manieth error is an alarm."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from streamwatch.core.estimators.notifying.class_shift import ClassShift, Moved
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Alarm, Outcome

SEVENTH = {"seventh": 7}
RECENT = 4
"""Outcomes that tell how a model does now."""
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_SNAPSHOT = msgspec.msgpack.Decoder(tuple[str, list[Outcome]])
_TOTALS = msgspec.msgpack.Decoder(tuple[dict[str, int], list[Alarm]])


class Recorder:
    """Stands where `EstimatorSet` stands.

    Parameters
    ----------
    detectors
        Each with the number of errors from one of its alarms to the next.
    """

    def __init__(self, detectors: Mapping[str, int] = SEVENTH):
        self.detectors = detectors
        self.outcomes: dict[str, list[Outcome]] = {}
        self.errors: dict[str, int] = {}
        self.records_over_limit = {"classes": 0, "models": 0}
        self.recent_alarms: deque[Alarm] = deque(maxlen=50)
        self.comparisons = None
        """No model is compared with another."""
        self.history_days = 0

    def pasts(self):
        """No past is kept."""
        return {}

    def fold(self, outcomes):
        alarms = []
        for outcome in outcomes:
            model = outcome.model
            folded = self.outcomes.setdefault(model, [])
            folded.append(outcome)
            if outcome.true_class != outcome.predicted_class:
                errors = self.errors[model] = self.errors.get(model, 0) + 1
                for detector, every in self.detectors.items():
                    if errors % every == 0:
                        alarms.append(self._alarm(outcome, detector, errors // every, errors / len(folded)))
        self.recent_alarms.extend(alarms)
        return alarms

    def fold_models(self, outcomes):
        """All there is to fold, without comparisons."""
        return self.fold(outcomes)

    def _alarm(self, outcome, detector, ordinal, before):
        count = len(self.outcomes[outcome.model])
        after, every = outcome.delay_ms / 1000, float(self.detectors[detector])
        where = outcome.model, detector, ordinal, count, outcome.event_ms, outcome.resolved_ms
        return Alarm(*where, float(count), every, before, after, float(count))

    def outcomes_of(self, model):
        return len(self.outcomes[model])

    def first_ms(self, model):
        return self.outcomes[model][0].event_ms if model in self.outcomes else 0

    def levels(self, models: Sequence[str]):
        return {model: self._level(self.outcomes[model]) for model in models if model in self.outcomes}

    def _level(self, folded):
        recent = folded[-RECENT:]
        error = sum(outcome.true_class != outcome.predicted_class for outcome in recent) / len(recent)
        return Level(error, 0.2, float(RECENT), len(folded))

    def headlines(self, models):
        del models
        return {}

    def accuracy_misleads(self, model):
        del model
        return False

    def confirmation_expected_ms(self, model, at_ms):
        del model, at_ms

    def confirmation(self, model, at_ms, rise):
        del model, at_ms, rise

    def false_alarms_monthly(self, alarm):
        del alarm

    def delays_moved(self, model):
        del model
        return ()

    def class_shift(self, model, level):
        """Of a model by the numbers that are at hand, so that each notification has one of its own."""
        count = len(self.outcomes.get(model, ()))
        moved = Moved("a", level, float(count))
        return ClassShift("unclear", float(count), level, 0.0, 1.0, moved, None) if count % 2 else None

    def segment_change(self, model):
        """As above, of every third."""
        count = len(self.outcomes.get(model, ()))
        return None if count % 3 else SegmentChange("part", str(count), 0.75, 0.25, 0.125, 0.5)

    def retire(self, model):
        del self.outcomes[model]
        self.errors.pop(model, None)

    def models(self):
        return list(self.outcomes)

    def families(self):
        return [
            Family(
                "outcomes_total",
                "counter",
                "",
                ("model",),
                [((model,), float(len(folded))) for model, folded in sorted(self.outcomes.items())],
            ),
            Family(
                "errors_total",
                "counter",
                "",
                ("model",),
                [((model,), float(self.errors.get(model, 0))) for model in sorted(self.outcomes)],
            ),
        ]

    def families_in_slices(self):
        yield
        yield
        return self.families()

    def details_in_slices(self):
        yield
        return {}

    def snapshots(self, models):
        """Those of some models, one after another."""
        return map(self.snapshot, models)

    def snapshot(self, model):
        return _ENCODER.encode((model, self.outcomes[model]))

    def restore(self, snapshot):
        model, outcomes = _SNAPSHOT.decode(snapshot)
        self.outcomes[model] = outcomes
        self.errors[model] = sum(o.true_class != o.predicted_class for o in outcomes)
        return model

    def estimators(self):
        return {"recorder": "every outcome"}

    def drifts_of_references(self):
        """None: no model follows another."""
        return {}

    def totals(self):
        return _ENCODER.encode((self.records_over_limit, list(self.recent_alarms)))

    def restore_totals(self, totals):
        self.records_over_limit, recent = _TOTALS.decode(totals)
        self.recent_alarms = deque(recent, maxlen=50)
