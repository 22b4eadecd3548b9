"""Keys of ids in the state: ids prefixed by their namespace, or digests of both for a state on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import xxhash

_SEPARATOR: Final = "\x1f"
"""Separator of namespace and id. Neither has control characters, so different pairs give different keys."""


def digest_ids(ids: Sequence[str]) -> list[str]:
    """Return the 128-bit digest (XXH3) of each id, as a text of 16 latin-1 characters.

    The probability that any two of 10⁹ ids share a digest is about 10⁻²¹.
    """
    digest = xxhash.xxh3_128_digest
    return [digest(id_).decode("latin-1") for id_ in map(str.encode, ids)]


def digest_bytes(ids: Sequence[str]) -> bytes:
    """Concatenate the digests of ids, 16 bytes each."""
    digest = xxhash.xxh3_128_digest
    return b"".join([digest(id_) for id_ in map(str.encode, ids)])


def bytes_of_keys(keys: Sequence[str]) -> bytes:
    """Concatenate digests that `digest_ids` wrote as texts, 16 bytes each."""
    return "".join(keys).encode("latin-1")


@dataclass(frozen=True, slots=True)
class IdKeys:
    """Function from ids of one namespace to their keys.

    Attributes
    ----------
    prefix
        Text before the id: the namespace and a separator, or nothing.
    digest
        Whether the key is the digest of prefix and id together.
    """

    prefix: str = ""
    digest: bool = False

    def __call__(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the keys of ids, in order."""
        keys = [self.prefix + id_ for id_ in ids] if self.prefix else ids
        return digest_ids(keys) if self.digest else keys


def id_keys(namespace: str, *, digest: bool) -> IdKeys | None:
    """Make the function from ids of a namespace to keys; None where ids are their own keys.

    Parameters
    ----------
    namespace
        Ids of different namespaces never share a key. Ids of the namespace "" get no prefix.
    digest
        Whether keys are digests of namespace and id together, as a state on disk has them.
    """
    if not namespace and not digest:
        return None
    return IdKeys(namespace + _SEPARATOR if namespace else "", digest)
