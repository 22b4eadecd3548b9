"""Estimators that forget nothing: a snapshot is the list of outcomes, every seventh error is an alarm."""

from __future__ import annotations

from collections import deque

import msgspec

from streamwatch.core.events import Alarm, Outcome
from streamwatch.core.series import Family

EVERY = 7
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_SNAPSHOT = msgspec.msgpack.Decoder(tuple[str, list[Outcome]])
_TOTALS = msgspec.msgpack.Decoder(tuple[dict[str, int], list[Alarm]])


class Recorder:
    """Stands where `Monitors` stands."""

    def __init__(self):
        self.outcomes: dict[str, list[Outcome]] = {}
        self.errors: dict[str, int] = {}
        self.records_over_limit = {"classes": 0, "models": 0}
        self.recent_alarms: deque[Alarm] = deque(maxlen=50)

    def fold(self, outcomes):
        alarms = []
        for outcome in outcomes:
            model = outcome.model
            folded = self.outcomes.setdefault(model, [])
            folded.append(outcome)
            if outcome.truth != outcome.predicted:
                errors = self.errors[model] = self.errors.get(model, 0) + 1
                if errors % EVERY == 0:
                    count = len(folded)
                    before, after = errors / count, outcome.delay_ms / 1000
                    ordinal = errors // EVERY
                    at_ms = outcome.at_ms
                    n_eff = float(count)
                    alarms.append(
                        Alarm(model, "seventh", ordinal, count, at_ms, n_eff, 7.0, before, after, n_eff)
                    )
        self.recent_alarms.extend(alarms)
        return alarms

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

    def details(self):
        return {}

    def snapshot(self, model):
        return _ENCODER.encode((model, self.outcomes[model]))

    def restore(self, snapshot):
        model, outcomes = _SNAPSHOT.decode(snapshot)
        self.outcomes[model] = outcomes
        self.errors[model] = sum(o.truth != o.predicted for o in outcomes)
        return model

    def estimators(self):
        return {"recorder": "every outcome"}

    def totals(self):
        return _ENCODER.encode((self.records_over_limit, list(self.recent_alarms)))

    def restore_totals(self, totals):
        self.records_over_limit, recent = _TOTALS.decode(totals)
        self.recent_alarms = deque(recent, maxlen=50)
