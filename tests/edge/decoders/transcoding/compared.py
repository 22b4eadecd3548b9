"""Texts of a transcoder beside the whole JSON text of the same values, at every path that is wanted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.schemas.schema import Undecodable, ValueReader
from streamwatch.edge.decoders.transcoding.wanted import Transcoder, Wanted

Path = tuple[str | None, ...]
"""Names of fields; None leads to each element of an array."""


def wanted(paths: Sequence[Path]) -> Wanted:
    """Want what is at the end of these paths; the path without a step is the value itself."""
    found = Wanted()
    for path in paths:
        found.add(path)
    return found


def texts_of(transcoder: Transcoder, contents: Sequence[bytes]) -> list[bytes | None]:
    """Text of each content, None where it is left to others; bytes of no content are between them."""
    whole, starts = b"\xff", []
    for content in contents:
        starts.append(len(whole))
        whole += content + b"\xff\0"
    data = np.frombuffer(whole + bytes(PADDING), np.uint8).copy()
    begins = np.array(starts, np.int64)
    stops = begins + np.array([len(content) for content in contents], np.int64)
    found = transcoder.texts(data, begins, stops)
    text = data if found.data is None else found.data
    spans = zip(found.starts.tolist(), found.sizes.tolist(), strict=True)
    return [None if size < 0 else text[at : at + size].tobytes() for at, size in spans]


def content_at(tree: Any, path: Path) -> Any:
    """What a mapping sees at a path: the content, or of which type it is where the path ends before."""
    for i, step in enumerate(path):
        if step is None:
            if not isinstance(tree, list):
                return "no array", tree is None
            return [content_at(each, path[i + 1 :]) for each in tree]
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def exactly(tree: Any) -> str:
    """A tree with every bit of its numbers; objects by their names, as maps of protobuf have no order."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{name!r}: {exactly(tree[name])}" for name in sorted(tree)) + "}"
    if isinstance(tree, list | tuple):
        return "[" + ", ".join(map(exactly, tree)) + "]"
    return repr(tree)


def check(reader: ValueReader, paths: Sequence[Path], contents: Sequence[bytes]) -> int:
    """Compare texts with the reader's own; how many there were."""
    transcoder = reader.transcoder(wanted(paths))
    if transcoder is None:
        return 0
    count = 0
    for content, text in zip(contents, texts_of(transcoder, contents), strict=True):
        if text is None:
            continue
        count += 1
        try:
            reported = reader.to_json(content, 0, None)
            if reported == text:
                continue
            whole = msgspec.json.decode(reported)
        except Undecodable:
            raise AssertionError(
                f"{content.hex()} is not what its schema says, and became {text!r}"
            ) from None
        found = msgspec.json.decode(text)
        for path in paths:
            has, expected = exactly(content_at(found, path)), exactly(content_at(whole, path))
            assert has == expected, (content.hex(), path, text)
    return count


def changed(chance: random.Random, content: bytes) -> bytes:
    """Bytes of a value as they are, or damaged."""
    value = bytearray(content)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 4))):
        at = chance.randrange(len(value) + 1)
        match chance.randrange(5):
            case 0 if at < len(value):
                value[at] ^= 1 << chance.randrange(8)
            case 1:
                value[at:at] = chance.randbytes(chance.choice((1, 2, 9)))
            case 2:
                del value[at : at + chance.choice((1, 1, 4))]
            case 3:
                value[at:at] = value[at : at + chance.randrange(1, 20)]
            case _:
                value[at : at + 1] = bytes([chance.choice((0, 1, 2, 127, 128, 255))])
    return bytes(value)
