"""Predictions that are revised, through Kafka: recomputed from the records; restarts and replay agree."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from confluent_kafka import Producer

from tests.integration.conftest import Broker
from tests.integration.one_log import dumped, replayed
from tests.integration.running import DEADLINE_SECONDS, Child, child, parsed, value
from tests.integration.test_one_order import PARTITIONS
from tests.integration.topics import create_topic, fresh

IDS, MODELS, HORIZON_MS, ALPHA = 600, ("steady", "moody"), 3_600_000, 0.995
REVISED = (
    "first_prediction_accuracy_ratio",
    "last_prediction_accuracy_ratio",
    "revision_gain",
    "outcomes_revised_ratio",
)


@dataclass
class Recorded:
    """Records by time, in milliseconds since the first, no two at the same; what must come of them."""

    records: list[tuple[int, str, dict[str, Any]]] = field(
        default_factory=list[tuple[int, str, dict[str, Any]]]
    )
    outcomes: dict[str, list[tuple[str, str, str, int, int]]] = field(
        default_factory=lambda: {model: [] for model in MODELS}
    )
    """By model: truth, first, last, and milliseconds from each of these to the label."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Conflicts and duplicates, by setting."""


def told(seed: int) -> Recorded:
    """Tell of ids ten seconds apart, predicted once to four times, most of them labelled within the hour."""
    chance, found = random.Random(seed), Recorded()
    used: set[int] = set()

    def at(wanted_ms: int) -> int:
        while wanted_ms in used:
            wanted_ms += 1
        used.add(wanted_ms)
        return wanted_ms

    labels: list[tuple[int, str, str, dict[str, list[tuple[int, str]]]]] = []
    for number in range(IDS):
        began_ms, truth = number * 10_000, chance.choice("abc")
        label_ms = at(began_ms + 5_000 + int(HORIZON_MS * 0.9 * chance.random() ** 2))
        made: dict[str, list[tuple[int, str]]] = {}
        for model, change in zip(MODELS, (0.1, 0.6), strict=True):
            times = [at(began_ms + chance.randrange(4_000))]
            while chance.random() < change and len(times) < 4:
                times.append(at(times[-1] + chance.randrange(1, 1_000_000)))
            right = 0.6
            made[model] = []
            for moment in times:
                made[model].append((moment, truth if chance.random() < right else chance.choice("abc")))
                right += 0.1
            for moment, said in made[model]:
                document = {"id": str(number), "model": model, "prediction": said}
                found.records.append((moment, "predictions", document))
        if chance.random() < 0.9:
            found.records.append((label_ms, "labels", {"id": str(number), "label": truth}))
            labels.append((label_ms, str(number), truth, made))
        else:
            labels.append((began_ms + HORIZON_MS, str(number), "", made))  # all are predicted before that
    for label_ms, _, truth, made in sorted(labels, key=lambda label: label[0]):
        for model, predictions in made.items():
            _settle(found, model, label_ms, truth, predictions)
    found.records.sort(key=lambda record: record[0])
    return found


def _settle(
    found: Recorded, model: str, label_ms: int, truth: str, predictions: list[tuple[int, str]]
) -> None:
    before = [each for each in predictions if each[0] < label_ms or not truth]
    (first_ms, first), last_ms, last = before[0], before[0][0], before[0][1]
    for moment, said in before[1:]:
        for setting in ("last", "both"):
            found.counts[setting, "duplicate" if said == last else "conflict"] += 1
        if said != last:
            last_ms, last = moment, said
    for _, said in predictions[len(before) :]:
        for setting, stands in (("last", last), ("both", first)):
            found.counts[setting, "duplicate" if said == stands else "conflict"] += 1
    if truth:
        found.outcomes[model].append((truth, first, last, label_ms - first_ms, label_ms - last_ms))


def written(broker: Broker, topics: Mapping[str, str], recorded: Recorded) -> None:
    """Write the records, some hours ago."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20})
    chance = random.Random(7)
    began_ms = time.time_ns() // 1_000_000 - 6 * HORIZON_MS
    for at, side, document in recorded.records:
        place = chance.randrange(PARTITIONS)
        producer.produce(topics[side], json.dumps(document), partition=place, timestamp=began_ms + at)
    assert producer.flush(60) == 0


def overrides(broker: Broker, topics: Mapping[str, str], conflicts: str, state: Path | None) -> list[str]:
    return [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "state.kind=memory" if state is None else f"state.directory={state}",
        f"join.conflicts={conflicts}",
        f"join.horizon={HORIZON_MS}ms",
        f"monitors.revisions.alpha={ALPHA}",
    ]


async def _answered(daemon: Child, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{daemon.url()}/{path}") as answer:
        return parsed(await answer.text()) if path == "metrics" else await answer.json()


async def everything(daemon: Child, outcomes: int) -> dict[str, Any]:
    """What a daemon says once it has evaluated so many outcomes, and everything that was written."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            samples = await _answered(daemon, "metrics")
            found = sum(n for (name, _), n in samples.items() if name == "outcomes_total")
            if (
                found == outcomes
                and value(samples, "merge_held_records") == 0
                and value(samples, "caught_up") == 1
            ):
                break
            assert found <= outcomes
            await asyncio.sleep(0.1)
    models = (await _answered(daemon, "api/v1/models"))["models"]
    alone = {model: (await _answered(daemon, f"api/v1/models/{model}"))["details"] for model in MODELS}
    return {"samples": samples, "models": models, "alone": alone}


async def killed_early(daemon: Child) -> None:
    """End a life by SIGKILL once it has evaluated something."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            if any(name == "outcomes_total" for name, _ in await _answered(daemon, "metrics")):
                break
            await asyncio.sleep(0.02)
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()


def faded(values: list[bool]) -> float:
    """Mean with weights alpha^age."""
    weights = [ALPHA**age for age in range(len(values) - 1, -1, -1)]
    return sum(w for w, v in zip(weights, values, strict=True) if v) / sum(weights)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("conflicts", ["last", "both"])
async def test_what_is_revised_counts_as_chosen_live_killed_and_replayed(
    broker: Broker, tmp_path: Path, conflicts: str
) -> None:
    topics = {side: await create_topic(broker, fresh(side), PARTITIONS) for side in ("predictions", "labels")}
    recorded = told(3)
    written(broker, topics, recorded)
    total = sum(map(len, recorded.outcomes.values()))
    for name in ("killed", "memory"):
        (tmp_path / name).mkdir()
    durable = overrides(broker, topics, conflicts, tmp_path / "state")
    with child(tmp_path / "killed", *durable, "state.commit_events=200") as daemon:
        await killed_early(daemon)
    with child(tmp_path / "killed", *durable) as daemon:
        killed = await everything(daemon, total)
    with child(tmp_path / "memory", *overrides(broker, topics, conflicts, None)) as daemon:
        found = await everything(daemon, total)
    assert (killed["models"], killed["alone"]) == (found["models"], found["alone"])

    samples = found["samples"]
    assert value(samples, "join_identities_violated") == 0
    for kind in ("conflict", "duplicate"):
        assert value(samples, f"predictions_{kind}_total") == recorded.counts[conflicts, kind] > 50
    for model, outcomes in recorded.outcomes.items():
        firsts, lasts = ([each[place] == each[0] for each in outcomes] for place in (1, 2))
        counted, delays = (lasts, 4) if conflicts == "last" else (firsts, 3)
        of_model = {"model": model, "forgetting": "landmark"}
        assert value(samples, "accuracy_ratio", **of_model) == pytest.approx(sum(counted) / len(counted))
        assert value(samples, "label_delay_seconds_sum", model=model) == pytest.approx(
            sum(each[delays] for each in outcomes) / 1000
        )
        if conflicts == "last":
            assert "revisions" not in found["alone"][model]
            continue
        revised = [last != first for _, first, last, _, _ in outcomes]
        first, last = faded(firsts), faded(lasts)
        expected = dict(zip(REVISED, (first, last, last - first, faded(revised)), strict=True))
        assert {name: value(samples, name, model=model) for name in REVISED} == pytest.approx(expected)
        said = found["alone"][model]["revisions"]
        assert (said["outcomes"], said["revised"]) == (len(outcomes), sum(revised))
        assert said["gained"] - said["lost"] == sum(lasts) - sum(firsts)

    dumped(broker, topics, PARTITIONS, tmp_path / "log.jsonl")
    settings = overrides(broker, topics, conflicts, None)
    replay = (await asyncio.to_thread(replayed, tmp_path / "log.jsonl", settings))["models"]
    for model in MODELS:
        live, again = found["models"][model], replay[model]
        assert {n: v for n, v in again["metrics"].items() if live["metrics"].get(n) != v} == {}
        assert again["details"] == live["details"]
