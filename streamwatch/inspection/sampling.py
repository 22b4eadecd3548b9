"""Fields with label probabilities: with which probability a label is asked for, and whether it was."""

from __future__ import annotations

from math import floor, log10
from typing import Final

from streamwatch.inspection.columns import Column
from streamwatch.inspection.streams import Stream
from streamwatch.inspection.words import words

SAMPLED: Final = frozenset(
    {"sampling", "sample", "sampled", "label", "labelling", "labeling", "review", "audit"}
)
CHANCE: Final = frozenset({"probability", "prob", "rate", "chance", "share", "fraction"})
PROPENSITY: Final = frozenset({"propensity", "propensities"})
ASKED: Final = frozenset({"requested", "request", "sampled", "selected", "drawn", "asked"})
"""Words in names of fields: of sampled labels, of probabilities, of both, and of requests."""


def sampling_note(stream: Stream) -> str | None:
    """Propose `label_probability` for a topic of predictions, in a note; None if no field looks like one.

    It is not part of the guessed mapping, as records with a smaller probability than those of the sample
    would be invalid.
    """
    found = next((column for _, column in sorted(stream.columns.items()) if _is_probability(column)), None)
    if found is None:
        return None
    least = min(found.numbers)
    unit = 10.0 ** floor(log10(least))
    rounded = float(f"{floor(least / unit * (1 + 1e-9)) * unit:.1g}")
    fields = {"label_probability": found.location, "min_label_probability": f"{rounded:g}"}
    asked = next((column for _, column in sorted(stream.columns.items()) if _is_request(column)), None)
    if asked is not None:
        fields["label_requested"] = asked.location
    written = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return (
        f"topic {stream.topic}: {found.location} looks like the probability with which a label is asked for "
        f"({least:g} at least); if so, add {written} to its mapping, with the smallest probability in use"
    )


def _is_probability(column: Column) -> bool:
    """Return whether a column is named like a sampling probability and has only numbers in (0, 1]."""
    named = set(words(column.leaf))
    speaks = bool(named & PROPENSITY) or bool(named & SAMPLED and named & CHANCE)
    numbers = column.numbers
    return speaks and len(numbers) == column.counts.total() > 0 and all(0.0 < each <= 1.0 for each in numbers)


def _is_request(column: Column) -> bool:
    """Return whether a column is named like a request of a label and has only booleans."""
    named = set(words(column.leaf))
    return column.is_boolean and bool(named & ASKED) and bool(named & SAMPLED)
