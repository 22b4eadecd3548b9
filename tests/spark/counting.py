"""Buckets that count, over the contract of `core.buckets`: what they have to say is known without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from streamwatch.core.buckets.contract import FeedResult


class CountingIds:
    """Counts words, and hands each on to the model bucket of its length."""

    def __init__(self, number: int, model_buckets: int = 2) -> None:
        self.number = number
        self.model_buckets = model_buckets
        self.words: Counter[str] = Counter()
        self.batches: list[int] = []

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        del end_ms
        words = [word for piece in pieces for word in piece.decode().split()]
        self._add(batch, words)
        parts: list[list[str]] = [[] for _ in range(self.model_buckets)]
        for word in words:
            parts[len(word) % self.model_buckets].append(word)
        delta = msgspec.msgpack.encode((batch, words))
        body = msgspec.msgpack.encode(sum(self.words.values()))
        handed = [(to, " ".join(part).encode()) for to, part in enumerate(parts)]
        return FeedResult(handed, [("totals", f"ids/{self.number}", body)], delta)

    def take_in(self, delta: bytes) -> None:
        batch, words = msgspec.msgpack.decode(delta, type=tuple[int, list[str]])
        self._add(batch, words)

    def base(self) -> list[bytes]:
        halves = list(self.words.elements())
        middle = len(halves) // 2
        batch = self.batches[-1]
        return [msgspec.msgpack.encode((batch, half)) for half in (halves[:middle], halves[middle:])]

    def _add(self, batch: int, words: Sequence[str]) -> None:
        self.words.update(words)
        self.batches.append(batch)


class CountingModels(CountingIds):
    """Counts words and reports how often each came."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        del end_ms
        words = [word for piece in pieces for word in piece.decode().split()]
        self._add(batch, words)
        results = [("word", word, msgspec.msgpack.encode(self.words[word])) for word in sorted(set(words))]
        return FeedResult((), results, msgspec.msgpack.encode((batch, words)))
