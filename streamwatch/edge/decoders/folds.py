"""The fold a prediction carries, and whether that fold tests its id."""

from __future__ import annotations

from typing import Any, Final

from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.folds import Scheme, roles

_MOST_DIGITS: Final = 4


def judged_fold(raw: Any, scheme: Scheme | None) -> tuple[int, str]:
    """The number of a fold and no reason, or −1 and the reason why it is none of the scheme's."""
    if scheme is None:
        return -1, "fold_without_scheme"
    text = canonical_text(raw) or ""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not 0 <= number < scheme.folds or str(number) != text:
        return -1, "invalid_fold"
    return number, ""


def fold_tests(event_id: str, fold: int, scheme: Scheme | None) -> bool:
    """Tell whether a fold tests an id, given as trainers know it; every fold does in the prequential form."""
    return scheme is None or scheme.prequential or roles(event_id, fold, scheme).tests
