"""Values of segments of one prediction as one text, so that a number can stand for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

OTHER: Final = "__other__"
"""Stands for the values of a segment that are not told apart."""
_REMEMBERED: Final = 16_384
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[tuple[str, str]])


def segments_text(segments: Mapping[str, str]) -> str:
    """Write segments with their values, in their order."""
    return _ENCODER.encode(list(segments.items())).decode()


@lru_cache(_REMEMBERED)
def segments_of(text: str) -> dict[str, str]:
    """Read what `segments_text` wrote; nobody may change it.

    Raises
    ------
    ValueError
        If it is nothing that `segments_text` writes.
    """
    return dict(_DECODER.decode(text))


def others_of(segments: Mapping[str, str]) -> dict[str, str]:
    """The same segments with `OTHER` as the value of each."""
    return dict.fromkeys(segments, OTHER)
