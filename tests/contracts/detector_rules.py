"""What every kind of detector in `detectors.KINDS` owes, as a list of what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

CALM, JUMP = 4_000, 600


def faults(kind: DetectorKind) -> list[str]:
    """What is wrong with one kind, in words."""
    return [*_undescribed(kind), *_misbehaved(kind), *_dependent(kind)]


def every_kind() -> MonitorsSpec:
    """One detector of every kind, at its defaults."""
    return MonitorsSpec(
        (), tuple(kind.spec() for kind in KINDS), (), max_models=1, max_classes=2, opponents=()
    )


def losses() -> NDArray[np.int32]:
    """Every fifth outcome wrong for long; then every one."""
    return np.r_[np.arange(CALM) % 5 == 0, np.ones(JUMP, np.bool_)].astype(np.int32)


def _table() -> ModelTable:
    table = ModelTable(every_kind())
    table.add_model()
    return table


def _fold(table: ModelTable, loss: NDArray[np.int32], cuts: Sequence[int] = ()) -> list[AlarmRow]:
    """Alarms by position in the whole stream."""
    alarms: list[AlarmRow] = []
    for part in np.split(np.arange(len(loss)), sorted(cuts)):
        rows = np.zeros(len(part), np.int32)
        found = table.fold(rows, rows, loss[part])
        alarms += [alarm._replace(position=int(part[alarm.position])) for alarm in found]
    return alarms


def _undescribed(kind: DetectorKind) -> Iterator[str]:
    if kind.entry not in catalogue.DETECTORS:
        yield "it has no line in the catalogue"
    if not is_dataclass(kind.spec) or "name" not in {f.name for f in fields(kind.spec)}:
        yield "its specification is no dataclass with a name"
    elif kind.spec().name != kind.entry.name:
        yield "its default name is not its name in the catalogue"
    if "alarms" not in (kind.state.names or ()):
        yield "its state does not count alarms"
    if kind.state.itemsize != sum(kind.state[name].itemsize for name in kind.state.names or ()):
        yield "its state has padding"


def _misbehaved(kind: DetectorKind) -> Iterator[str]:
    index, loss = KINDS.index(kind), losses()
    trace = _table().trace(np.zeros(len(loss), np.int32), np.zeros_like(loss), loss)
    alarms = [alarm for alarm in trace.alarms if alarm.detector == index]
    if any(alarm.outcome <= CALM for alarm in alarms):
        yield "it alarms on a constant stream"
    risen = [alarm for alarm in alarms if alarm.outcome > CALM]
    if not risen:
        yield "it does not alarm when every outcome turns wrong"
    if not all(alarm.statistic > alarm.threshold and alarm.after > alarm.before for alarm in risen):
        yield "an alarm is not above its threshold, or not a rise"
    for alarm in risen:
        shown = (trace.statistic[index, alarm.position], trace.threshold[index, alarm.position])
        if shown != (alarm.statistic, alarm.threshold):
            yield "what it shows at an alarm is not what the alarm says"
    if [alarm.ordinal for alarm in alarms] != list(range(1, len(alarms) + 1)):
        yield "its alarms are not counted"
    calm = slice(1_000, CALM)
    if np.isnan(trace.statistic[index, calm]).any() or np.isnan(trace.threshold[index, calm]).any():
        yield "it shows no statistic or no threshold"
    if (trace.warned[index] & trace.alarmed[index]).any() or trace.warned[index].any() > kind.entry.warns:
        yield "it warns at an alarm, or without saying so in the catalogue"


def _dependent(kind: DetectorKind) -> Iterator[str]:
    """Whether it matters how a stream is cut, or stopped and resumed."""
    index, loss = KINDS.index(kind), losses()
    whole, cut = _table(), _table()
    expected = _fold(whole, loss)
    cuts = [1, 31, 32, 1_000, CALM - 1, CALM + 7, CALM + 40]
    if _of(index, _fold(cut, loss, cuts)) != _of(index, expected) or _section(kind, cut) != _section(
        kind, whole
    ):
        yield "it depends on how a stream is cut into batches"
    for stop in cuts:
        before, after = _table(), _table()
        alarms = _fold(before, loss[:stop])
        after.restore(0, before.snapshot(0))
        alarms += [alarm._replace(position=alarm.position + stop) for alarm in _fold(after, loss[stop:])]
        if _of(index, alarms) != _of(index, expected) or _section(kind, after) != _section(kind, whole):
            yield f"it does not go on as before when resumed after outcome {stop}"


def _of(index: int, alarms: list[AlarmRow]) -> list[AlarmRow]:
    return [alarm for alarm in alarms if alarm.detector == index]


def _section(kind: DetectorKind, table: ModelTable) -> bytes | None:
    """The state of the detector of one kind, as a snapshot has it; None if it has none."""
    found = [state for name, state in table.snapshot(0).items() if name.startswith(f"{kind.name}/")]
    return found[0] if len(found) == 1 else None
