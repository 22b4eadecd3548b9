"""Whether RocksDB will read its own manifest to the end, before it opens a directory.

A manifest is a log of blocks of 32 KiB. A record in it is `[checksum 4][length 2][type 1][content]`, its
checksum is of type and content (RocksDB wiki, "Write Ahead Log File Format"): the length is under none.
One that is damaged so that it reaches past the end of the file looks like a write that a crash has cut short.
RocksDB drops it with all that follows, and then removes the files that nothing names any more.

The two can be told apart: of a write that was cut short the content is not whole, whatever its length; behind
a damaged length it is, and its checksum says how long it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamwatch.edge.stores.errors import StateDamaged

BLOCK_BYTES: Final = 32_768
HEADER_BYTES: Final = 7
_POLYNOMIAL: Final = 0x82F63B78
"""Of CRC-32C, reflected."""
_MASK: Final = 0xA282EAD8
"""Added to a rotated checksum where it is stored."""


def require_whole_manifest(directory: Path) -> None:
    """Refuse a directory whose manifest RocksDB would silently read in part; costs the reading of one block.

    A directory without a manifest, or whose `CURRENT` is no name of one, is left to RocksDB.

    Raises
    ------
    StateDamaged
        If a record's length is not the one that its checksum is of.
    """
    try:
        named = (directory / "CURRENT").read_bytes().strip()
        path = directory / Path(named.decode()).name
        with path.open("rb") as file:
            size = file.seek(0, 2)
            # Only in a last block that is not full does RocksDB take what is too long for cut short.
            begin = file.seek(size // BLOCK_BYTES * BLOCK_BYTES)
            block = file.read()
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return
    position = 0
    while (content := position + HEADER_BYTES) <= len(block):
        length = int.from_bytes(block[position + 4 : position + 6], "little")
        if content + length > len(block):
            found = _length_of(int.from_bytes(block[position : position + 4], "little"), block[content - 1 :])
            if found is not None:
                raise StateDamaged(
                    f"the state is damaged: {path} is not what was written (the record at byte "
                    f"{begin + position} has a length of {length} bytes, its checksum is that of {found}); "
                    "restore a backup of the directory, or move it away to start afresh"
                )
            return
        position = content + length


def _length_of(stored: int, typed: bytes) -> int | None:
    """Bytes of content, after a byte of type, that have this checksum; None: no number of them has."""
    rotated = (stored - _MASK) & 0xFFFFFFFF
    wanted = (rotated >> 17 | rotated << 15) & 0xFFFFFFFF ^ 0xFFFFFFFF
    table = [_step(byte) for byte in range(256)]
    checksum = 0xFFFFFFFF
    for count, byte in enumerate(typed):
        checksum = checksum >> 8 ^ table[(checksum ^ byte) & 0xFF]
        if checksum == wanted:
            return count
    return None


def _step(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte
