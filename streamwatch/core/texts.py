"""Texts of keys, gathered in another order by one compiled loop."""

from __future__ import annotations

from typing import Any

from streamwatch.core.jit import entry


@entry
def gather_texts(texts: Any, starts: Any, sizes: Any, gathered: Any) -> int:
    """Copy texts, each with the byte behind it, to `gathered`; the bytes written.

    Parameters
    ----------
    texts
        uint8.
    starts, sizes
        int64, one of each for every text: where it begins, and its bytes without the one behind it.
    gathered
        uint8 with room for all of them; written to.
    """
    place = 0
    for i in range(len(starts)):
        start = starts[i]
        for j in range(sizes[i] + 1):
            gathered[place + j] = texts[start + j]
        place += sizes[i] + 1
    return place
