"""Ids as the state on disk knows them: digests of one length, whatever the id looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import xxhash

DIGEST_BYTES: Final = 16


def digest_id(id: str) -> str:  # noqa: A002 - the events' own word
    """The 128-bit digest (XXH3) of an id, spelt as a text of 16 latin-1 characters.

    Two of 10⁹ ids share one with a probability of 10⁻²¹.
    """
    return xxhash.xxh3_128_digest(id.encode()).decode("latin-1")


def digest_ids(ids: Sequence[str]) -> list[str]:
    """The keys of ids, in order."""
    digest = xxhash.xxh3_128_digest
    return [digest(id_).decode("latin-1") for id_ in map(str.encode, ids)]
