"""Ids as the state knows them: within their namespace, and on disk as digests of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import xxhash

DIGEST_BYTES: Final = 16
_SEPARATOR: Final = "\x1f"
"""Between namespace and id: neither contains a control character, so that no two pairs are spelt alike."""


def digest_id(id: str) -> str:  # noqa: A002 - the events' own word
    """The 128-bit digest (XXH3) of an id, spelt as a text of 16 latin-1 characters.

    Two of 10⁹ ids share one with a probability of 10⁻²¹.
    """
    return xxhash.xxh3_128_digest(id.encode()).decode("latin-1")


def digest_ids(ids: Sequence[str]) -> list[str]:
    """The keys of ids, in order."""
    digest = xxhash.xxh3_128_digest
    return [digest(id_).decode("latin-1") for id_ in map(str.encode, ids)]


def digest_bytes(ids: Sequence[str]) -> bytes:
    """Digests of ids one behind the other, `DIGEST_BYTES` each."""
    digest = xxhash.xxh3_128_digest
    return b"".join([digest(id_) for id_ in map(str.encode, ids)])


def bytes_of_keys(keys: Sequence[str]) -> bytes:
    """Digests spelt as texts, as `digest_ids` gives them, one behind the other."""
    return "".join(keys).encode("latin-1")


@dataclass(frozen=True, slots=True)
class IdKeys:
    """From the ids of a namespace to keys.

    Attributes
    ----------
    prefix
        What keys begin with, before the id.
    digest
        Whether the key is the digest of both.
    """

    prefix: str = ""
    digest: bool = False

    def __call__(self, ids: Sequence[str]) -> Sequence[str]:
        """Give the keys of ids, in order."""
        keys = [self.prefix + id_ for id_ in ids] if self.prefix else ids
        return digest_ids(keys) if self.digest else keys


def id_keys(namespace: str, *, digest: bool) -> IdKeys | None:
    """Give what turns the ids of a namespace into keys; None where ids are their own keys.

    Parameters
    ----------
    namespace
        Ids of different namespaces never share a key. Those of the namespace "" are spelt as they are.
    digest
        Whether keys are digests, for a state on disk; they are taken over namespace and id together.
    """
    if not namespace and not digest:
        return None
    return IdKeys(namespace + _SEPARATOR if namespace else "", digest)
