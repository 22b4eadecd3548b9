"""What MOA 24.07's change detectors say of D1's 40,000 losses, recorded step by step.

    python -m tests.golden.moa_detectors            (needs a JDK, and Maven the first time)

writes D1_bernoulli_moa_further.csv.gz anew: a column for each of `RECORDED`; 0 quiet, 1 warning, 2 alarm.
"""

from __future__ import annotations

import csv
import gzip
import subprocess
from pathlib import Path

import numpy as np

from streamwatch.papers.detection.peers import MOA_DETECTORS
from tests.bench.kernel_vs_moa import BUILD, build_peer

HERE = Path(__file__).parent
RECORDED = {
    "cusum": "CusumDM",
    "cusum_20": "CusumDM:l=20",
    "ewma": "EWMAChartDM",
    "hddm_a": "HDDM_A_Test:t=One-sided",
    "hddm_a_loose": "HDDM_A_Test:t=One-sided,d=0.05,w=0.1",
    "hddm_w": "HDDM_W_Test:t=One-sided",
    "hddm_w_slow": "HDDM_W_Test:t=One-sided,m=0.01",
    "stepd": "STEPD",
    "stepd_100": "STEPD:r=100,o=0.0001,w=0.01",
}
"""Names of columns → MOA's classes with options."""
FILE = HERE / "D1_bernoulli_moa_further.csv.gz"


def moa_says(losses: str, detectors: list[str]) -> list[list[int]]:
    """Codes of every detector for each loss, a line of `losses`.

    Each runs in a process of its own: MOA's HDDM_W keeps its state in static fields.
    """
    build_peer(MOA_DETECTORS)
    java = ["java", "-cp", f"{BUILD / 'libs'}/*:{BUILD / 'classes'}", "MoaDetectors"]
    said: list[list[int]] = []
    for detector in detectors:
        done = subprocess.run(
            [*java, detector], input=losses, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        said.append([int(line) for line in done[1:]])
    return said


def recorded() -> dict[str, np.ndarray]:
    """Columns of the golden table."""
    with gzip.open(FILE, "rt") as lines:
        names, *rows = csv.reader(lines)
    return dict(zip(names, np.array(rows, np.int8).T, strict=True))


def main() -> None:
    """Record all of them."""
    with gzip.open(HERE / "D1_bernoulli_input.csv.gz", "rt") as lines:
        losses = lines.read().partition("\n")[2]
    columns = moa_says(losses, list(RECORDED.values()))
    text = "\n".join(",".join(map(str, row)) for row in zip(*columns, strict=True))
    with FILE.open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(f"{','.join(RECORDED)}\n{text}\n".encode())


if __name__ == "__main__":
    main()
