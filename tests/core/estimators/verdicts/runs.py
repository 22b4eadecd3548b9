"""Leads run through the compiled detector, with the record after every step or for many repetitions."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.verdicts.detector import observe_lead
from streamwatch.core.estimators.verdicts.readout import dispersion
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT, verdict_parameters

Floats = NDArray[np.float64]


@numba.njit(error_model="numpy")
def _history(paces, records, p, leads, outcomes, times, out_paces, out, changed):  # noqa: PLR0917 - compiled
    for t in range(leads.shape[0]):
        changed[t] = observe_lead(paces[0], records[0], p[0], leads[t], outcomes[t], times[t])
        out_paces[t] = paces[0]
        out[t] = records[0]


@numba.njit(error_model="numpy")
def _first_changes(paces, records, p, leads, out):
    """Steps at which each verdict first came (better, worse), and its since; one row a stream."""
    for r in range(leads.shape[0]):
        v = records[r]
        for t in range(leads.shape[1]):
            if observe_lead(paces[r], v, p[0], float(leads[r, t]), t + 1, t + 1) and v.verdict != 0:
                side = 0 if v.verdict > 0 else 1
                if out[r, side] == 0:
                    out[r, side] = t + 1
                    out[r, 2 + side] = v.since


def history(
    leads: Floats, outcomes: int = 100_000, delta: float = 0.05, kept: NDArray[np.void] | None = None
) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """The record after every step, `PACE` and `VERDICT` in one, and whether the verdict changed at it.

    The k-th step is outcome 3k + 7, at 1000·k milliseconds. `kept`, shape (1,), is a record to go on from.
    """
    pace, record = np.zeros(1, PACE), np.zeros(1, VERDICT)
    if kept is not None:
        for part in (pace, record):
            for name in part.dtype.names or ():
                part[name] = kept[name]
    first = int(pace["steps"][0])
    steps = np.arange(first, first + len(leads))
    paces, out = np.zeros(len(leads), PACE), np.zeros(len(leads), VERDICT)
    changed = np.zeros(len(leads), np.bool_)
    parameters = verdict_parameters(outcomes, delta).reshape(1)
    _history(pace, record, parameters, leads, 3 * steps + 7, 1000 * steps, paces, out, changed)
    whole = np.zeros(len(leads), np.dtype([*PACE.descr, *VERDICT.descr]))
    for part in (paces, out):
        for name in part.dtype.names or ():
            whole[name] = part[name]
    return whole, changed


def records_of(streams: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """New records of so many streams."""
    return np.zeros(streams, PACE), np.zeros(streams, VERDICT)


def first_changes(leads: NDArray[np.int8], outcomes: int = 100_000, delta: float = 0.05) -> NDArray[np.int64]:
    """For each stream (row): step of the first better, the first worse (0: never), their since."""
    out = np.zeros((len(leads), 4), np.int64)
    _first_changes(
        np.zeros(len(leads), PACE),
        np.zeros(len(leads), VERDICT),
        verdict_parameters(outcomes, delta).reshape(1),
        leads,
        out,
    )
    return out


def last_dispersions(leads: NDArray[np.int8]) -> Floats:
    """φ of each stream (row) after its last step."""
    records = np.zeros(len(leads), VERDICT)
    parameters = verdict_parameters(100_000, 0.05).reshape(1)
    _first_changes(
        np.zeros(len(leads), PACE), records, parameters, leads, np.zeros((len(leads), 4), np.int64)
    )
    return dispersion(records)


@numba.njit(error_model="numpy")
def _intervals(paces, records, p, leads, blocks):
    for r in range(leads.shape[0]):
        v = records[r]
        for t in range(leads.shape[1]):
            observe_lead(paces[r], v, p[0], float(leads[r, t]), t + 1, t + 1)
            if (t + 1) % 64 == 0:
                block = blocks[r, t // 64]
                block.blocks, block.mean, block.spread = v.blocks, v.mean, v.spread


def intervals(leads: NDArray[np.int8]) -> NDArray[np.void]:
    """What `lead_bounds` reads, at the end of every block of 64 of every stream, a row of `leads`."""
    kept = np.dtype([(name, VERDICT[name]) for name in ("blocks", "mean", "spread")])
    blocks = np.zeros((len(leads), leads.shape[1] // 64), kept)
    _intervals(
        np.zeros(len(leads), PACE),
        np.zeros(len(leads), VERDICT),
        verdict_parameters(100_000, 0.05).reshape(1),
        leads,
        blocks,
    )
    return blocks
