"""Everything the join knows, written to topics at a moderate rate, with totals known beforehand.

Records of one id keep their order: they share a partition on each side. So whatever else interleaves, it is
certain which prediction of an id comes first, which label wins, and what is counted as what.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections import Counter
from heapq import heappop, heappush
from random import Random

from confluent_kafka import Producer

from streamwatch.core.records.events import fold_name
from streamwatch.folds import Scheme, roles

PARTITIONS = 3
IDS_PER_SECOND = 200
IN_FOLDS_PER_SECOND = 25
"""Ids where models predict in folds: each has several times as many records."""
MODELS = ("m", "n", "o")
IN_FOLDS = ("p", "q")
"""Models that predict in folds, if there are any."""
DISORDER_MS = 3_000
TURN_SECONDS = 0.02
LEAST_SECONDS = 20.0
"""It goes on for so long at least: until models that came once retire."""
COUNTED = (
    "predictions",
    "duplicates",
    "conflicts",
    "labels with a model",
    "labels for all",
    "nulls on predictions",
    "nulls on labels",
    "invalid",
    "wrong folds",
    "withdrawn",
)
STORIES = {"all": 40, "named": 22, "early_all": 10, "early_named": 10, "silent": 14, "withdrawn": 4}


class Traffic:
    """Writes until told to stop, then what it has begun.

    `counted` says what must have been counted in the end, `outcomes` and `errors` that of each model, or of
    each fold. Under a scheme every fold predicts every id, and counts where it tests.
    """

    def __init__(
        self, servers: str, predictions: str, labels: str, seed: int, scheme: Scheme | None = None
    ) -> None:
        self._options = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 10}
        self._topics = {"prediction": predictions, "label": labels}
        self._chance = Random(seed)
        self._scheme = scheme
        self._due: list[tuple[float, int, str, str, bytes | None]] = []
        self._sequence = 0
        self._ids = 0
        self._rate = IDS_PER_SECOND if scheme is None else IN_FOLDS_PER_SECOND
        self.stop = asyncio.Event()
        self.records = 0
        self.counted: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.outcomes: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.revised: Counter[str] = Counter()
        """By model: predictions of which another class was said afterwards."""
        self.reverted = 0
        """Predictions that were repeated after another class was said."""

    async def run(self) -> None:
        producer = Producer(self._options)
        began = time.monotonic()
        while self._due or not self.stop.is_set() or time.monotonic() - began < LEAST_SECONDS:
            now = time.monotonic()
            if not self.stop.is_set() or now - began < LEAST_SECONDS:
                while self._ids < (now - began) * self._rate:
                    self._tell(now)
            while self._due and self._due[0][0] <= now:
                self._write(producer, *heappop(self._due)[2:])
            producer.poll(0)
            await asyncio.sleep(TURN_SECONDS)
        assert await asyncio.to_thread(producer.flush, 600) == 0

    def _tell(self, now: float) -> None:
        """The story of one id."""
        chance, number = self._chance, self._ids
        self._ids += 1
        key, kind = f"id-{number}", chance.choices(list(STORIES), list(STORIES.values()))[0]
        models = chance.sample(MODELS, chance.randint(1, 3))
        if number % 400 < 40:
            models.append(f"guest-{number // 400}")  # comes once, and retires
        true_class = chance.choice("abc")
        later = now + chance.uniform(0.0, 1.5)
        predicted_at = later if kind.startswith("early") else now
        labelled_at = now if kind.startswith("early") else later
        wrong = {model: self._predict(predicted_at, key, model, true_class, number) for model in models}
        testing = self._predict_in_folds(predicted_at, key, true_class, number)
        if kind == "withdrawn":
            self._at(later, "prediction", key, None)
            self.counted["withdrawn"] += len(models) + len(testing)
            self.counted["nulls on predictions"] += 1
        elif kind != "silent":
            in_folds = IN_FOLDS if self._scheme else ()
            named = [*models, *in_folds] if kind.endswith("named") else [None]
            for model in named:
                self._label(labelled_at, key, model, true_class)
            self.outcomes.update((*models, *testing))
            self.errors.update(wrong | testing)
        if chance.random() < 0.02:
            self._at(now, chance.choice(["prediction", "label"]), key, b'{"model": ')
            self.counted["invalid"] += 1
        if number % 100 == 50:
            self._at(now, "label", key, None)
            self.counted["nulls on labels"] += 1

    def _predict_in_folds(self, at: float, key: str, true_class: str, number: int) -> dict[str, bool]:
        """Every fold predicts; whether it is wrong, of those that test the id."""
        if self._scheme is None:
            return {}
        return {
            fold_name(model, fold): wrong
            for model in IN_FOLDS
            for fold in range(self._scheme.folds)
            for wrong in [self._predict(at, key, model, true_class, number, fold)]
            if roles(key, fold, self._scheme).tests
        }

    def _predict(
        self, at: float, key: str, model: str, true_class: str, number: int, fold: int | None = None
    ) -> bool:
        """Whether it is wrong."""
        chance = self._chance
        tests = fold is None or self._scheme is None or roles(key, fold, self._scheme).tests
        bad = model in "mo" and (number // 250) % 2 == (model == "o")  # their quality turns, to raise alarms
        predicted_class = (
            true_class if chance.random() > (0.6 if bad else 0.1) else "abc"["abc".index(true_class) - 1]
        )
        record = {"model": model, "prediction": predicted_class}
        if chance.random() < 0.3:
            record |= {"scores": {"a": 0.5, "b": 0.25, "c": 0.25}}
        if chance.random() < 0.2:
            record |= {"timestamp": int(time.time() * 1_000) + chance.randint(-900, 900)}
        if fold is not None:
            record |= {"fold": fold}
        self._at(at, "prediction", key, record)
        self.counted["predictions" if tests else "wrong folds"] += 1
        repeated = at + 1.0
        if chance.random() < 0.06:
            repeated = at + chance.uniform(0.0, 0.4)
            self._at(repeated, "prediction", key, record)
            self.counted["duplicates" if tests else "wrong folds"] += 1
        if chance.random() < 0.03:
            other, revised = "abc"["abc".index(predicted_class) - 1], at + chance.uniform(0.0, 0.4)
            self._at(revised, "prediction", key, record | {"prediction": other})
            self.counted["conflicts" if tests else "wrong folds"] += 1
            self.revised[model] += 1
            self.reverted += revised < repeated < at + 1.0
        return predicted_class != true_class

    def _label(self, at: float, key: str, model: str | None, true_class: str) -> None:
        chance = self._chance
        record = {"label": true_class} if model is None else {"label": true_class, "model": model}
        form = "labels for all" if model is None else "labels with a model"
        self._at(at, "label", key, record)
        self.counted[form] += 1
        if chance.random() < 0.08:
            self._at(at + chance.uniform(0.0, 0.4), "label", key, record)
            self.counted[form] += 1
        if chance.random() < 0.08:
            other = "abc"["abc".index(true_class) - 1]
            self._at(at + chance.uniform(0.0, 0.4), "label", key, record | {"label": other})
            self.counted[form] += 1

    def _at(self, at: float, side: str, key: str, record: dict | bytes | None) -> None:
        value = json.dumps(record).encode() if isinstance(record, dict) else record
        self._sequence += 1
        heappush(self._due, (at, self._sequence, side, key, value))

    def _write(self, producer: Producer, side: str, key: str, value: bytes | None) -> None:
        partition = zlib.crc32(key.encode()) % PARTITIONS
        record_ms = time.time_ns() // 1_000_000
        if self._chance.random() < 0.02:
            record_ms -= DISORDER_MS
        producer.produce(self._topics[side], value, key, partition, timestamp=record_ms)
        self.records += 1
