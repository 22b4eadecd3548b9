"""Records that hold several events: cut anywhere, killed anywhere, replayed, with the same numbers."""

from __future__ import annotations

import asyncio
import io
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamwatch.assembly.state import state_opening
from streamwatch.assembly.topics import build_topics
from streamwatch.cli import app
from streamwatch.core.join import join
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Partition
from streamwatch.daemon import MERGE, POSITIONS, SourcePositions, State
from streamwatch.daemon.alerting import NOTHING
from streamwatch.daemon.source_positions import encoded_progress
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.json_api import JsonExporter
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry
from tests.commands import CliRunner
from tests.history.recorded_log import START_MS, Log, daemons_document

DOCUMENT: dict[str, Any] = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {
        "predictions": [
            {
                "name": "batches",
                "mapping": {
                    "id": "key",
                    "model": "=batch",
                    "prediction": {"largest": "value.p[]", "classes": ["a", "b"]},
                    "when": {"value.to": "all"},
                },
            },
            {
                "name": "pairs",
                "mappings": [
                    {"model": "=champion", "prediction": "value.champion"},
                    {"model": "=challenger", "prediction": "value.challenger", "optional": True},
                ],
            },
        ],
        "labels": [
            {"name": "truths", "mapping": {"id": "value.batch", "label": "value.y[]"}},
            {"name": "settled", "mapping": {"model": None}},
        ],
    },
    "join": {"horizon": "1h", "early_horizon": "10m"},
    "state": {"kind": "memory"},
}
"""Two topics whose records hold hundreds of predictions, or one or two, and labels for both."""


class Expected(Counter[str]):
    """What is to be counted, worked out record by record as the log is written."""


def log_of(seed: int, records: int = 150) -> tuple[Log, Expected]:
    """A log, and its counts: every element and pair is counted here on its own."""
    chance = random.Random(seed)
    log, expected = Log(), Expected()
    at_ms = START_MS
    for n in range(records):
        at_ms += chance.randrange(0, 2_000)
        size = chance.choice((1, 2, 30, 300))
        answers = [
            chance.choice((0.1, 0.5, 0.8, None if chance.random() < 0.1 else 0.2)) for _ in range(size)
        ]
        to = chance.choice(("all", "all", "all", "nobody"))
        value = {"to": to, "p": [[p, None if p is None else 1 - p] for p in answers]}
        log.add("batches", n % 2, at_ms, value, key=b"k%d" % n)
        truths = [chance.choice("ab") for _ in range(size)]
        log.add("truths", 0, at_ms + 500, {"batch": f"k{n}", "y": truths})
        if to == "all":
            for p, truth in zip(answers, truths, strict=True):
                expected["invalid"] += p is None
                expected["tied"] += p == 0.5
                if p is not None:
                    expected["batch"] += 1
                    expected["batch wrong"] += ("a" if p >= 0.5 else "b") != truth
        else:
            expected["skipped"] += 1
        pair = {"id": n, "champion": chance.choice("ab")}
        if chance.random() < 0.6:
            pair["challenger"] = chance.choice("ab")
        log.add("pairs", 0, at_ms, pair)
        log.add("settled", 0, at_ms + 700, {"id": n, "label": truths[0]})
        for model in ("champion", "challenger"):
            expected[model] += model in pair
            expected[f"{model} wrong"] += model in pair and pair[model] != truths[0]
    return log, expected


def assert_counted(document: dict[str, Any], expected: Expected) -> None:
    for model in ("batch", "champion", "challenger"):
        metrics = document["models"][model]["metrics"]
        found = (metrics["outcomes_total"], metrics["errors_total"])
        assert found == (expected[model], expected[f"{model} wrong"]), model
    stream = document["stream"]
    assert stream["predictions_tied_total"] == {"batches": expected["tied"]}
    assert stream["records_skipped_total"] == {"batches": expected["skipped"]}
    assert stream["records_evaluated_total"] == dict.fromkeys(("batches", "pairs", "settled", "truths"), 150)
    predicted = {"batches": expected["batch"] + expected["invalid"], "pairs": 0, "settled": 150}
    predicted["pairs"] = expected["champion"] + expected["challenger"]
    events = stream["events_evaluated_total"]
    assert {topic: events[topic] for topic in predicted} == predicted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_every_event_of_every_record_counts_once_however_polls_cut_the_log(seed: int) -> None:
    log, expected = log_of(seed)
    first = daemons_document(DOCUMENT, log, seed)
    assert_counted(first, expected)
    second = daemons_document(DOCUMENT, log, seed + 100)
    assert (first["models"], first["stream"]) == (second["models"], second["stream"])


@pytest.mark.slow
def test_a_replay_of_the_log_gives_the_daemons_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _ = log_of(3)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "streamwatch.yaml").write_text(json.dumps(DOCUMENT))
    lines = [record.of_kcat() for records in log.partitions.values() for record in records]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    result = CliRunner().invoke(app, ["replay", "log.jsonl", "--json"])
    assert result.exit_code == 0, result.output
    replayed, document = json.loads(result.stdout), daemons_document(DOCUMENT, log, 5)
    assert replayed["models"] == document["models"]
    assert replayed["stream"] == document["stream"]


class Killed:
    """A daemon on a disk that is killed between two turns, again and again."""

    def __init__(self, settings: Settings, log: Log, seed: int, *, lives: int) -> None:
        self._settings = settings
        self._log = log
        self._chance = random.Random(seed)
        self._lives = lives
        self._ended = False
        self.letters: set[tuple[str, int, int]] = set()

    async def run(self) -> dict[str, Any]:
        opening = state_opening(self._settings, build_topics(self._settings), Telemetry(stream=io.StringIO()))
        while True:
            state = opening()
            try:
                turns = 10**9 if self._lives == 0 else self._chance.randrange(1, 25)
                self._lives = max(0, self._lives - 1)
                await self._live(state, turns)
                if self._ended:
                    return document_of(state)
            finally:
                state.store.close()

    async def _live(self, state: State, turns: int) -> None:
        processor, log = state.processor, self._log.partitions
        read = {partition: state.source_positions.positions.get(partition, 0) for partition in log}
        while turns > 0:
            records = {}
            for partition, entries in log.items():
                stop = min(len(entries), read[partition] + self._chance.choice((0, 1, 7, 60)))
                if stop > read[partition]:
                    records[partition] = entries[read[partition] : stop]
                    read[partition] = stop
            ended = all(read[partition] == len(entries) for partition, entries in log.items())
            found_ms = int(time.monotonic() * 1_000) + 100_000 if ended else None
            stands = {p: PartitionState(read[p], len(log[p]), ended, found_ms) for p in read}
            await processor.receive(Poll(records, stands))
            while processor.has_ready and turns > 0:
                processor.evaluate()
                turns -= 1
                if processor.may_commit and self._chance.random() < 0.5:
                    commit(state)
            if ended and not processor.has_ready:
                self._ended = True
                return


def commit(state: State) -> None:
    state.processor.settle()
    sections = {
        POSITIONS: SourcePositions(dict(state.processor.positions)).encode(),
        MERGE: encoded_progress(state.processor.progress),
    }
    state.store.commit(state.checkpoint.changes(sections, NOTHING.outbox))
    state.store.flush()


def document_of(state: State) -> dict[str, Any]:
    slices = state.processor.report_in_slices()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return json.loads(JsonExporter().render(Asked(end.value)) or b"")


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "room"), [(1, 4_096), (2, 4_096), (3, 50)])
def test_no_kill_loses_an_event_or_counts_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, room: int
) -> None:
    monkeypatch.setattr(join, "ROOM", room)  # outcomes of a step, which may end among the events of a record
    log, expected = log_of(seed)
    documents = []
    for name, lives in (("once", 0), ("killed", 12)):
        state = {"kind": "rocksdb", "directory": str(tmp_path / name)}
        settings = Settings(**DOCUMENT | {"state": state})
        documents.append(asyncio.run(Killed(settings, log, seed, lives=lives).run()))
    undisturbed, killed = documents
    assert_counted(killed, expected)
    assert (killed["models"], killed["stream"]) == (undisturbed["models"], undisturbed["stream"])


class Letters:
    """Remembers what was put."""

    def __init__(self) -> None:
        self.put_: list[tuple[int, str]] = []
        self.is_full = False

    def put(self, record: Any, reason: str) -> None:
        self.put_.append((record.offset, reason))

    async def flush(self) -> None: ...
    async def stop(self) -> None: ...
    def families(self) -> tuple[()]:
        return ()


async def test_a_record_with_invalid_events_is_a_dead_letter_once_and_its_other_events_count() -> None:
    settings = Settings(**DOCUMENT)
    letters = Letters()
    telemetry = Telemetry(stream=io.StringIO())
    state = state_opening(settings, build_topics(settings), telemetry, dead_letters=letters)()
    log = Log()
    log.add("batches", 0, START_MS, {"to": "all", "p": [[1, 2], [None, 2], [2, 1], ["x", 2]]}, key=b"k")
    log.add("batches", 0, START_MS + 1, {"to": "all", "p": []}, key=b"l")
    log.add("truths", 0, START_MS + 5, {"batch": "k", "y": ["b", "a", "a", "b"]})
    far_ms = int(time.monotonic() * 1_000) + 100_000
    stands = {p: PartitionState(len(r), len(r), True, far_ms) for p, r in log.partitions.items()}
    await state.processor.receive(Poll(dict(log.partitions), stands))
    while state.processor.has_ready:
        state.processor.evaluate()
    assert letters.put_ == [(0, "invalid_class_scores"), (1, "missing_elements")]
    stream = document_of(state)["stream"]
    assert stream["records_invalid_total"] == {
        "invalid_class_scores": {"batches": 2},
        "missing_elements": {"batches": 1},
    }
    assert stream["events_evaluated_total"] == {"batches": 5, "truths": 4}
    assert stream["records_evaluated_total"] == {"batches": 2, "truths": 1}
    assert (stream["predictions_accepted_total"], stream["predictions_resolved_total"]) == (2, 2)
    assert Partition("batches", 0) in state.processor.positions
