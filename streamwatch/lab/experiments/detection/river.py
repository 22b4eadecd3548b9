"""river's detectors, at its defaults; nothing where river is not installed."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamwatch.lab.experiments.detection.candidates import Alarms, Candidate
from streamwatch.lab.experiments.detection.streams import Losses


def candidates() -> tuple[Candidate, ...]:
    """Detectors that river has for losses of 0 and 1, but KSWIN: it takes 0.2 ms an outcome."""
    try:
        from river import drift  # noqa: PLC0415 - what a user may have beside streamwatch
        from river.drift import binary  # noqa: PLC0415
    except ImportError:
        return ()
    made: dict[str, Callable[[], Any]] = {
        "PageHinkley": drift.PageHinkley,
        "ADWIN": drift.ADWIN,
        "DDM": binary.DDM,
        "EDDM": binary.EDDM,
        "HDDMA": binary.HDDMA,
        "HDDMW": binary.HDDMW,
        "FHDDM": binary.FHDDM,
    }
    return tuple(Candidate(name, "river", _alarms(make)) for name, make in made.items())


def _alarms(make: Callable[[], Any]) -> Callable[[Losses], Alarms]:
    def found(losses: Losses) -> Alarms:
        alarms: Alarms = []
        for run in losses.tolist():
            detector = make()
            alarms.append([])
            for outcome, loss in enumerate(run, 1):
                detector.update(loss)
                if detector.drift_detected:
                    alarms[-1].append(outcome)
        return alarms

    return found
