"""Register of detectors that see outcomes in the order of their predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isfinite
from typing import Final

import msgspec
import numpy as np

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.alarm import AlarmRow
from streamwatch.core.estimators.kernel.snapshot import fingerprint
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch, Classes
from streamwatch.core.estimators.registers.prediction_clock.held import Held, HeldState, Left
from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec, table_spec
from streamwatch.core.estimators.registers.questions import LateAlarm
from streamwatch.core.estimators.samples import Sample, Slice
from streamwatch.core.fold_names import model_of
from streamwatch.core.specs import LandmarkSpec

VERSION: Final = 2
"""Raised when the meaning of the state changes."""


class _State(msgspec.Struct, array_like=True, frozen=True):
    model: str
    held: HeldState
    sections: dict[str, bytes]


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_State)


@dataclass(slots=True)
class _Model:
    """What is kept of a model: its row of the detectors' table, and outcomes that wait."""

    name: str
    row: int
    held: Held


class PredictionClock:
    """Detectors of up to `capacity` models.

    An outcome costs a place in a sorted array and, once settled, what the detectors cost; held back it takes
    16 B in memory and 4 B in a snapshot.
    """

    def __init__(self, spec: PredictionClockSpec, capacity: int) -> None:
        self._spec = spec
        self._table = ModelTable(table_spec(spec, capacity))
        self._models: dict[int, _Model] = {}
        self._raised: list[LateAlarm] = []
        self.section = fingerprint("prediction_clock", spec.horizon_ms, None, VERSION)
        self.title = f"outcomes held back for detectors (horizon {spec.horizon_ms / 1000:g} s)"

    @property
    def detectors(self) -> Sequence[str]:
        """Names of the detectors, by the index that `LateAlarm` has."""
        return [detector.name for detector in self._spec.detectors]

    def estimators(self) -> dict[str, str]:
        """Detectors in words, by names that change with their parameters: each begins anew alone."""
        sections = self._table.sections().items()
        return {
            f"{self.section}/{section}": f"{said} in prediction time"
            for section, said in sections
            if said != LandmarkSpec().name
        }

    def observe(self, batch: Batch) -> None:
        """Take in outcomes, and feed to the detectors those that are settled now."""
        if not len(batch.rows):
            return
        predicted_ms = batch.event_ms - batch.delay_ms
        miss = (batch.true_class != batch.predicted_class).astype(np.int64)
        order = np.argsort(batch.rows, kind="stable")
        for positions in np.split(order, np.flatnonzero(np.diff(batch.rows[order])) + 1):
            first = int(positions[0])
            model = self._of(int(batch.rows[first]), batch.outcomes[first].model)
            left = model.held.take(predicted_ms[positions], miss[positions], batch.event_ms[positions])
            found = self._feed(model.row, left)
            self._raised += [
                LateAlarm(
                    int(positions[left.cause[f.position]]),
                    f._replace(row=int(batch.rows[first])),
                    int(left.predicted_ms[f.position]),
                )
                for f in found
            ]

    def raised(self) -> Sequence[LateAlarm]:
        """Give the alarms of the outcomes observed since the last call, in their order within a model."""
        raised, self._raised = self._raised, []
        return raised

    def _of(self, row: int, name: str) -> _Model:
        model = self._models.get(row)
        if model is None:
            pattern = model_of(name)
            own = (
                k for k, d in enumerate(self._spec.detectors_by_model, 1) if fnmatchcase(pattern, d.models)
            )
            held = Held(self._spec.horizon_ms, self._spec.max_unsettled)
            model = self._models[row] = _Model(name, self._table.add_model(detectors=next(own, 0)), held)
        return model

    def _feed(self, row: int, left: Left) -> Sequence[AlarmRow]:
        if not len(left.miss):
            return ()
        truth = np.zeros(len(left.miss), np.int32)
        return self._table.fold(np.full(len(truth), row, np.int32), truth, left.miss.astype(np.int32))

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        model = self._models.pop(row, None)
        if model is not None:
            self._table.retire(model.row)

    def snapshot(self, row: int) -> bytes:
        """State of a row, canonical: the same outcomes give the same bytes; empty before any outcome."""
        model = self._models.get(row)
        if model is None:
            return b""
        return _ENCODER.encode(_State(model.name, model.held.state(), self._table.snapshot(model.row)))

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are none.

        Detectors whose parameters have changed begin with the outcomes that are held back.
        """
        if not state:
            return
        kept = _DECODER.decode(state)
        model = self._of(row, kept.model)
        model.held.restore(kept.held)
        self._table.restore(model.row, kept.sections)

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Series of the detectors of some models, under the names that other detectors' series have."""
        known = [(one.model, self._models[one.row]) for one in chosen if one.row in self._models]
        rows = np.array([model.row for _, model in known], np.int64)
        found: dict[str, list[Sample]] = {}
        for index, detector in enumerate(self._spec.detectors):
            statistic, threshold, alarms = self._table.detector_state(rows, index)
            values = {
                "detector_statistic": statistic,
                "detector_threshold": threshold,
                "alarms_total": alarms,
            }
            if next(kind for kind in KINDS if kind.spec is type(detector)).entry.warns:
                values["detector_warning"] = self._table.warned(rows, index).astype(np.float64)
            for name, of_models in values.items():
                found.setdefault(name, []).extend(
                    ((detector.name, model), value)
                    for (model, _), value in zip(known, of_models.tolist(), strict=True)
                    if isfinite(value)
                )
        return found

    def details(self, row: int, classes: Classes) -> Mapping[str, object]:
        """Give how many outcomes wait, came late or left early, and how far predictions are settled."""
        del classes
        model = self._models.get(row)
        if model is None:
            return {}
        said: dict[str, object] = {
            "detectors": self.detectors,
            "waiting": len(model.held),
            "evaluated": int(self._table.outcomes(np.array([model.row], np.int64))[0]),
            **model.held.counts,
        }
        if (passed_ms := model.held.passed_ms) is not None:
            said["settled_until_timestamp_seconds"] = passed_ms / 1000.0
        return {"prediction_clock": said}
