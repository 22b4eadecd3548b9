"""Batches that unpack to far more than they weigh."""

from __future__ import annotations

import gzip

import cramjam
from aiokafka.codec import lz4_encode

from tests.edge.sources.kafka.batches.raw_batches import GZIP, LZ4, SNAPPY, RawBatch, varint


def bomb(codec: int, size: int, times: int, fill: bytes = b"\x00") -> RawBatch:
    """Records of so many bytes each, all the same, compressed without ever being whole in memory here."""
    frames: list[bytes] = []
    for i in range(times):
        rest = b"\x00" + varint(0) + varint(i) + varint(-1) + varint(size)
        head = varint(len(rest) + size + 1) + rest
        plain = head + fill * size + b"\x00"
        if codec == GZIP:
            frames.append(gzip.compress(plain, 1))
        elif codec == SNAPPY:
            frames.append(plain)
        elif codec == LZ4:
            frames.append(lz4_encode(plain, 1))  # blocks of their own: brokers refuse linked ones
        else:
            frames.append(bytes(cramjam.zstd.compress(plain, level=1)))
    body = bytes(cramjam.snappy.compress_raw(b"".join(frames))) if codec == SNAPPY else b"".join(frames)
    return RawBatch([], codec=codec, body=body, count=times, last_delta=times - 1)
