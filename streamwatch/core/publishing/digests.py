"""Digests of outcomes and events up to a number, by which two replicas compare their sequences.

The digest up to number n is the sum of the hashes of the first n, modulo 2⁶⁴. Each hash includes the number,
so that the order matters; as a sum, the digest does not depend on where commits end, which differs between
replicas. An outcome's hash covers what a commit keeps: names, classes, times and the digest of the id, but
not scores.

Estimators and detectors are functions of the sequence of outcomes: under equal settings, replicas with equal
sequences have equal estimators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from streamwatch.core.publishing.kept_outcomes import KeptOutcomes
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_MULTIPLIER: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SHIFT: Final = np.uint64(31)
_NUMBERS: Final = ("low", "high", "event_ms", "delay_ms", "resolved_ms", "waited_ms", "assumed", "made")


class Digests(msgspec.Struct, frozen=True, array_like=True):
    """Digests up to a number of outcomes, and up to a number of events."""

    outcomes: int = 0
    events: int = 0


def added(digest: int, terms: int) -> int:
    """Add terms to a digest."""
    return (digest + terms) & _MASK


def outcome_terms(kept: KeptOutcomes, first: int) -> NDArray[np.uint64]:
    """Hash each outcome with its number.

    Parameters
    ----------
    kept
        Consecutive outcomes.
    first
        Number of the first of them.

    Returns
    -------
    numpy.ndarray
        Hashes, shape (n,); the digest grows by their sum.
    """
    records = np.frombuffer(kept.records, OUTCOME)
    classes = _hashes(kept.classes)
    segments = np.where(records["scores"] >= SEGMENTS_FROM, records["scores"] - SEGMENTS_FROM, -1)
    columns = [
        _hashes(kept.models)[records["model"]],
        *(classes[records[name]] for name in ("true_class", "predicted_class", "label_at_prediction")),
        classes[records["last_class"] - 1],
        _hashes(kept.segments)[segments],
        *(records[name].astype(np.uint64) for name in _NUMBERS),
        *records["carried"].astype(np.uint64).T,
    ]
    with np.errstate(over="ignore"):
        found = (np.arange(first, first + len(records), dtype=np.uint64)) * _GOLDEN
        for column in columns:
            found = (found ^ column) * _MULTIPLIER
            found ^= found >> _SHIFT
    return found


def outcomes_sum(kept: KeptOutcomes, first: int, count: int | None = None) -> int:
    """Sum the hashes of the first `count` outcomes, or of all; the first one has number `first`."""
    terms = outcome_terms(kept, first)[:count]
    return int(terms.sum(dtype=np.uint64)) if len(terms) else 0


def event_term(value: bytes) -> int:
    """Hash an event: its record, which includes its number."""
    return xxhash.xxh3_64_intdigest(value)


def _hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Hash each name; a final 0 stands for no name, number -1."""
    return np.array([*(xxhash.xxh3_64_intdigest(name.encode()) for name in names), 0], np.uint64)
