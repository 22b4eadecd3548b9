"""What a topic carries, and how it is decoded."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.events import Side
from streamwatch.core.ports import Decoder


@dataclass(frozen=True, slots=True)
class Topic:
    """Side of a topic, and the decoder of its records."""

    side: Side
    decoder: Decoder
