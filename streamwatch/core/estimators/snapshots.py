"""Snapshots of models, and of the totals over all models: taken from the state, and restored into it."""

from __future__ import annotations

from collections import deque

import msgspec

from streamwatch.core.estimators.models.snapshot import ModelSnapshot, decode, encode
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.events import Alarm

_ENCODER = msgspec.msgpack.Encoder()
_TOTALS = msgspec.msgpack.Decoder(tuple[dict[str, int], list[Alarm]])


class Snapshots:
    """Takes and restores snapshots of a state."""

    __slots__ = ("_state",)

    def __init__(self, state: EstimatorState) -> None:
        self._state = state

    def take(self, model: str) -> bytes:
        """Encode the whole state of a model; equal states give equal bytes."""
        state = self._state
        slot = state.index.models[model]
        return encode(
            ModelSnapshot(
                model=model,
                classes=list(slot.classes),
                max_classes=state.spec.max_classes,
                first_ms=slot.first_ms,
                delays=state.delays.snapshot(slot.row),
                last_alarms_ms=state.alarms.snapshot(slot.row),
                sections=state.table.snapshot(slot.row)
                | {register.section: register.snapshot(slot.row) for register in state.registers},
                past=state.pasts.snapshot(slot.row),
            )
        )

    def restore(self, snapshot: bytes) -> str:
        """Restore a model; see `EstimatorSet.restore`."""
        state, saved = self._state, decode(snapshot)
        if saved.max_classes != state.spec.max_classes:
            raise ValueError(
                f"max_classes must be {saved.max_classes} as in the snapshot of model {saved.model!r}, "
                f"got {state.spec.max_classes}"
            )
        if saved.model in state.index.models:
            state.index.retire(saved.model)
        row, classes = state.index.enter(saved.model, saved.first_ms)
        for name in saved.classes:
            classes[name] = len(classes)
        state.index.name_classes([row])
        state.table.restore(row, saved.sections)
        state.delays.restore(row, saved.delays)
        state.alarms.restore(row, saved.last_alarms_ms)
        state.pasts.restore(row, saved.past)
        for register in state.registers:
            if register.section in saved.sections:
                register.restore(row, saved.sections[register.section])
        return saved.model

    def estimators(self) -> dict[str, str]:
        """Describe the estimator behind each section of a snapshot, by section name."""
        state = self._state
        described = state.table.sections() | {r.section: r.title for r in state.registers}
        for register in state.raising:
            described |= register.estimators()
        return described

    def totals(self) -> bytes:
        """Encode the totals over all models: counters of limits, and recent alarms."""
        return _ENCODER.encode((self._state.index.over_limit, list(self._state.alarms.recent)))

    def restore_totals(self, totals: bytes) -> None:
        """Continue from what `totals` returned."""
        index, alarms = self._state.index, self._state.alarms
        over_limit, recent = _TOTALS.decode(totals)
        index.over_limit |= over_limit
        alarms.recent = deque(recent, maxlen=alarms.recent.maxlen)
