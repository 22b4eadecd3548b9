"""MOA's detectors, at its defaults, by Java; where a folder with MOA's jar files is given."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from streamwatch.lab.experiments.detection.candidates import Alarms, Candidate
from streamwatch.lab.experiments.detection.streams import Losses

MOA_DETECTORS: Final = Path(__file__).parent / "MoaDetectors.java"
"""What reads losses and writes what MOA's detectors say."""
_ALARM: Final = b"2"
_REMEMBERED: Final = 12
"""Arrays of losses whose answers are kept: as many as a group has streams."""
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


class MoaError(RuntimeError):
    """MOA cannot be run; the message says why."""


def candidates(jars: Path) -> tuple[Candidate, ...]:
    """MOA's detectors; one run of Java asks all of them.

    Raises
    ------
    MoaError
        If the folder has no jar file of MOA's.
    """
    if not any(jars.glob("moa-*.jar")):
        raise MoaError(f"expected a folder with moa-*.jar and what it needs, found none in {jars}")
    moa = _Moa(jars)
    return tuple(Candidate(name, "MOA", partial(moa.alarms, index)) for index, name in enumerate(_CLASSES))


class _Moa:
    """Asks all detectors at once, and remembers what they said of the last few losses."""

    def __init__(self, jars: Path) -> None:
        self._jars = jars
        self._said: list[tuple[Losses, list[Alarms]]] = []

    def alarms(self, index: int, losses: Losses) -> Alarms:
        """Alarms of one detector on each run, (runs, outcomes)."""
        for given, said in self._said:
            if given is losses:
                return said[index]
        self._said = [*self._said[1 - _REMEMBERED :], (losses, self._asked(losses))]
        return self._said[-1][1][index]

    def _asked(self, losses: Losses) -> list[Alarms]:
        # Java compiles a single source file by itself; an empty line begins the next run.
        command = ["java", "-cp", f"{self._jars}/*", str(MOA_DETECTORS), *_CLASSES]
        written = b"\n\n".join(b"\n".join(b"1" if loss else b"0" for loss in run) for run in losses.tolist())
        try:
            done = subprocess.run(command, input=written + b"\n", capture_output=True, check=False)  # noqa: S603
        except OSError as error:
            raise MoaError(f"java cannot be started: {error.strerror or error}") from error
        lines = done.stdout.splitlines()[1:]
        if done.returncode or len(lines) != losses.size:
            why = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
            raise MoaError(f"MOA answered {len(lines)} of {losses.size} losses: {why[-1]}")
        runs, length = losses.shape
        found: list[Alarms] = [[[] for _ in range(runs)] for _ in _CLASSES]
        for at, line in enumerate(lines):
            if _ALARM in line:
                for index, code in enumerate(line.split(b";")):
                    if code == _ALARM:
                        found[index][at // length].append(at % length + 1)
        return found
