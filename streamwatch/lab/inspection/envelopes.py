"""Envelopes that records come in, recognised by the fields that their specifications ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from streamwatch.lab.inspection.flatten import FlatRecord

USUAL: Final = 0.5


def envelopes(records: Sequence[FlatRecord]) -> list[str]:
    """Say which envelopes most records of a topic come in."""
    said: list[str] = []
    for told, fits in _ENVELOPES:
        count = sum(fits(record) for record in records)
        if count > USUAL * len(records):
            said.append(told)
    return said


def _has(record: FlatRecord, *places: str) -> bool:
    return all(place in record.scalars for place in places)


def _cloudevents(record: FlatRecord) -> bool:
    return _has(record, "value.specversion", "value.id", "value.source", "value.type")


def _binary_cloudevents(record: FlatRecord) -> bool:
    return _has(record, "header:ce_specversion", "header:ce_id")


def _debezium(record: FlatRecord) -> bool:
    before = ("value.payload.", "value.")
    return any(
        f"{head}op" in record.scalars and any(place.startswith(f"{head}source.") for place in record.scalars)
        for head in before
    )


def _kserve_v1(record: FlatRecord) -> bool:
    return "value.predictions" in record.arrays or "value.instances" in record.arrays


def _kserve_v2(record: FlatRecord) -> bool:
    return any(place in record.arrays for place in ("value.outputs", "value.inputs"))


def _seldon(record: FlatRecord) -> bool:
    return any(place in record.arrays for place in ("value.data.ndarray", "value.data.tensor.values"))


_ENVELOPES: Final[tuple[tuple[str, Callable[[FlatRecord], bool]], ...]] = (
    ("CloudEvents, structured: the event is below value.data", _cloudevents),
    ("CloudEvents, binary: attributes are in headers ce_…, the event is the value", _binary_cloudevents),
    ("Debezium: a row as it is after a change; deletions have none and are counted as invalid", _debezium),
    ("KServe v1: arrays of instances or predictions", _kserve_v1),
    ("KServe v2: arrays of inputs or outputs", _kserve_v2),
    ("Seldon: an array of data", _seldon),
)
