"""Detectors of river and MOA."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from streamwatch.papers.detection.candidates import Alarms, Candidate, Together
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.moa_runs import lines_of, refuse_without

# river's detectors; none if river is not installed.


def river_kinds() -> dict[str, Callable[..., Any]]:
    """Return the classes of river's detectors for losses of 0 and 1, except KSWIN (0.2 ms per outcome)."""
    try:
        from river import drift  # noqa: PLC0415 - what a user may have beside streamwatch
        from river.drift import binary  # noqa: PLC0415
    except ImportError:
        return {}
    return {
        "PageHinkley": drift.PageHinkley,
        "ADWIN": drift.ADWIN,
        "DDM": binary.DDM,
        "EDDM": binary.EDDM,
        "HDDMA": binary.HDDMA,
        "HDDMW": binary.HDDMW,
        "FHDDM": binary.FHDDM,
    }


def river_detectors() -> tuple[Candidate, ...]:
    """Build candidates of these detectors at their defaults."""
    return tuple(river_detector(name, make) for name, make in river_kinds().items())


def river_detector(name: str, make: Callable[[], Any]) -> Candidate:
    """Build a candidate of a detector of river, which `make` creates."""
    return Candidate(name, "river", partial(_river_alarms, make))


def _river_alarms(make: Callable[[], Any], losses: Losses) -> Alarms:
    alarms: Alarms = []
    for run in losses.tolist():
        detector = make()
        alarms.append([])
        for outcome, loss in enumerate(run, 1):
            detector.update(loss)
            if detector.drift_detected:
                alarms[-1].append(outcome)
    return alarms


# MOA's detectors, run by Java if a folder with MOA's jar files is given.


MOA_DETECTORS: Final = Path(__file__).parent / "MoaDetectors.java"
"""Program that reads losses and writes the alarms of MOA's detectors."""
_ALARM: Final = b"2"
_REMEMBERED: Final = 12
"""Number of arrays of losses whose alarms are cached: at least the streams of a group."""
_CLASSES: Final = (
    "PageHinkleyDM",
    "ADWINChangeDetector",
    "DDM",
    "EDDM",
    "RDDM",
    "CusumDM",
    "EWMAChartDM",
    "HDDM_A_Test",
    "HDDM_W_Test",
    "STEPD",
    "SEEDChangeDetector",
)


def moa_detectors(jars: Path, classes: Sequence[str] = _CLASSES) -> tuple[Candidate, ...]:
    """Build candidates of MOA's detectors, which one run of Java evaluates together.

    Parameters
    ----------
    jars
        Folder with MOA's jar files.
    classes
        Class of each, with options that differ from MOA's defaults as Class:option=value,option=value.

    Raises
    ------
    MoaError
        If the folder has no jar file of MOA's.
    """
    refuse_without(jars)
    moa = Together(partial(_moa_alarms, jars, tuple(classes)), _REMEMBERED)
    return tuple(Candidate(name, "MOA", partial(moa.alarms, index)) for index, name in enumerate(classes))


def _moa_alarms(jars: Path, classes: Sequence[str], losses: Losses) -> list[Alarms]:
    # An empty line begins the next run; the first line of the answer names the detectors.
    written = b"\n\n".join(b"\n".join(b"1" if loss else b"0" for loss in run) for run in losses.tolist())
    lines = lines_of(jars, MOA_DETECTORS, classes, written + b"\n", 1 + losses.size)[1:]
    runs, length = losses.shape
    found: list[Alarms] = [[[] for _ in range(runs)] for _ in classes]
    for at, line in enumerate(lines):
        if _ALARM in line:
            for index, code in enumerate(line.split(b";")):
                if code == _ALARM:
                    found[index][at // length].append(at % length + 1)
    return found
