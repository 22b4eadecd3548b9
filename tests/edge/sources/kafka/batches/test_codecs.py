"""Decompression in steps gives what was compressed, wherever steps end, and not a byte more than allowed."""

from __future__ import annotations

import gzip
import random
import struct

import cramjam
import pytest

from streamwatch.edge.sources.kafka.batches.opened import Oversized, Undecompressable, decompress
from tests.edge.sources.kafka.batches.raw_batches import GZIP, LZ4, SNAPPY, ZSTD, compressed

STEP = 1 << 16
LENGTHS = (0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP, 3 * STEP + 7)


def noise(length: int) -> bytes:
    """Not compressible: compressed, it is as long."""
    return random.Random(length).randbytes(length)


def contents(length: int) -> tuple[bytes, ...]:
    return noise(length), bytes(length), (b"ab" * length)[:length], noise(length // 2) + bytes(length // 2)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_what_was_compressed_comes_back_and_not_a_byte_more_is_allowed(codec: int, length: int) -> None:
    for content in contents(length):
        data = memoryview(compressed(codec, content))
        for most in (len(content), len(content) + 1, 4 * len(content)):
            plain = decompress(codec, data, most)
            assert plain.tobytes() == content
            assert not plain.flags.writeable
        if content:
            with pytest.raises(Oversized):
                decompress(codec, data, len(content) - 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_members_of_gzip_are_read_one_after_another_wherever_they_begin(length: int) -> None:
    written = [*contents(length), b"", b"last"]
    data = b"".join(gzip.compress(content, level) for level, content in enumerate(written, 1))
    plain = gzip.decompress(data)
    assert decompress(GZIP, memoryview(data), len(plain)).tobytes() == plain
    with pytest.raises(Oversized):
        decompress(GZIP, memoryview(data), len(plain) - 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_member_of_gzip_that_ends_early_or_is_followed_by_junk_is_refused(length: int) -> None:
    for content in contents(length):
        data = gzip.compress(content)
        for cut in (1, 7, 8, 9, len(data) // 2, len(data) - 1):
            with pytest.raises(Undecompressable):
                decompress(GZIP, memoryview(data[:-cut]), 2 * length + 1)
        with pytest.raises(Undecompressable):
            decompress(GZIP, memoryview(data + b"junk"), 2 * length + 1)


CODECS = [(GZIP, "gzip"), (SNAPPY, "snappy"), (LZ4, "lz4"), (ZSTD, "zstd")]


@pytest.mark.parametrize(("codec", "name"), CODECS)
def test_what_is_not_in_the_format_of_its_codec_is_refused_by_its_name(codec: int, name: str) -> None:
    with pytest.raises(Undecompressable, match=f"^{name}: "):
        decompress(codec, memoryview(b"\x05\xff no codec writes this"), 1_000)


def test_blocks_of_the_java_framing_of_snappy_are_put_together_within_what_is_allowed() -> None:
    written = [noise(1_000), bytes(STEP), b"", b"last"]
    blocks = [bytes(cramjam.snappy.compress_raw(content)) for content in written]
    framed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    data = memoryview(framed + b"".join(struct.pack(">i", len(block)) + block for block in blocks))
    plain = b"".join(written)
    assert decompress(SNAPPY, data, len(plain)).tobytes() == plain
    with pytest.raises(Oversized):
        decompress(SNAPPY, data, len(plain) - 1)
    assert decompress(SNAPPY, memoryview(framed), 10).tobytes() == b""
