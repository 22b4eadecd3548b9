"""Folds through Kafka: who is evaluated on what is recomputed from the records; restarts and replay agree."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from confluent_kafka import Producer
from scipy.stats import binomtest

from streamwatch.core.events import SEPARATOR
from streamwatch.folds import Scheme, roles
from tests.integration.conftest import Broker
from tests.integration.one_log import dumped, replayed
from tests.integration.running import DEADLINE_SECONDS, Child, child, parsed, value
from tests.integration.test_one_order import PARTITIONS
from tests.integration.topics import create_topic, fresh

IDS, FOLDS, MODELS = 400, 5, ("a", "b", "c")
SCHEMES = [Scheme("bootstrap", FOLDS), Scheme("cross-validation", FOLDS, prequential=False)]


def told(scheme: Scheme, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(side, document) in the order of time: every fold predicts every id, two predictions are of no fold.

    Labels of one id in three name their model, once for each; others are for all.
    """
    chance = random.Random(seed)
    truth = "x"
    for number in range(IDS):
        truth = truth if chance.random() < 0.7 else chance.choice("xyz")
        for skill, model in enumerate(MODELS):
            for fold in range(FOLDS):
                right = chance.random() < 0.9 - 0.1 * skill
                said = truth if right else chance.choice("xyz")
                yield "predictions", {"id": number, "model": model, "prediction": said, "fold": fold}
        label = {"id": number, "label": truth}
        for each in [{**label, "model": model} for model in MODELS] if number % 3 == 0 else [label]:
            yield "labels", each
    yield "predictions", {"id": 0, "model": "a", "prediction": "x", "fold": scheme.folds}
    yield "predictions", {"id": 0, "model": "a", "prediction": "x", "fold": "last"}


def written(broker: Broker, topics: Mapping[str, str], scheme: Scheme) -> list[tuple[str, dict[str, Any]]]:
    """Write the records, a millisecond apart, some hours ago."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20})
    chance = random.Random(7)
    began_ms = time.time_ns() // 1_000_000 - 5 * 3_600_000
    records = list(told(scheme, 3))
    for at, (side, document) in enumerate(records):
        place = chance.randrange(PARTITIONS)
        producer.produce(topics[side], json.dumps(document), partition=place, timestamp=began_ms + at)
    assert producer.flush(60) == 0
    return records


def recomputed(records: list[tuple[str, dict[str, Any]]], scheme: Scheme) -> dict[str, dict[int, list[bool]]]:
    """Hits of every fold of every model, in the order of ids."""
    truth = {document["id"]: document["label"] for side, document in records if side == "labels"}
    hits: dict[str, dict[int, list[bool]]] = {m: {f: [] for f in range(FOLDS)} for m in MODELS}
    for side, document in records:
        fold = document.get("fold")
        if side == "predictions" and fold in range(FOLDS) and roles(str(document["id"]), fold, scheme).tests:
            hits[document["model"]][fold].append(document["prediction"] == truth[document["id"]])
    return hits


def overrides(broker: Broker, topics: Mapping[str, str], scheme: Scheme, state: Path | None) -> list[str]:
    return [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "state.kind=memory" if state is None else f"state.directory={state}",
        "monitors.series=all",
        f"folds.scheme={scheme.validation}",
        f"folds.k={scheme.folds}",
        f"folds.prequential={str(scheme.prequential).lower()}",
    ]


async def answered(daemon: Child, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{daemon.url()}/{path}") as answer:
        return parsed(await answer.text()) if path == "metrics" else await answer.json()


async def everything(daemon: Child, outcomes: int) -> dict[str, Any]:
    """What a daemon says once it has evaluated so many outcomes."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            samples = await answered(daemon, "metrics")
            found = sum(n for (name, _), n in samples.items() if name == "outcomes_total")
            if found == outcomes and value(samples, "merge_held_records") == 0:
                break
            assert found <= outcomes
            await asyncio.sleep(0.1)
    models = (await answered(daemon, "api/v1/models"))["models"]
    folds = await answered(daemon, "api/v1/folds?forgetting=landmark")
    folds.pop("published_timestamp_seconds")
    return {"samples": samples, "models": models, "folds": folds}


async def killed_early(daemon: Child) -> None:
    """End a life by SIGKILL once it has evaluated something."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            if any(name == "outcomes_total" for name, _ in await answered(daemon, "metrics")):
                break
            await asyncio.sleep(0.02)
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()


def of_state(command: str, state: Path) -> str:
    """What a command says of a state, in which it must find nothing wrong."""
    line = [sys.executable, "-m", "streamwatch", "state", command, "--directory", str(state)]
    return subprocess.run(line, capture_output=True, check=True, text=True).stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.validation)
async def test_folds_are_evaluated_where_they_test_and_told_with_their_spread(
    broker: Broker, tmp_path: Path, scheme: Scheme
) -> None:
    topics = {side: await create_topic(broker, fresh(side), PARTITIONS) for side in ("predictions", "labels")}
    records = written(broker, topics, scheme)
    hits = recomputed(records, scheme)
    outcomes = sum(len(of_fold) for folds in hits.values() for of_fold in folds.values())
    for name in ("killed", "memory"):
        (tmp_path / name).mkdir()
    durable = overrides(broker, topics, scheme, tmp_path / "state")
    with child(tmp_path / "killed", *durable, "state.commit_events=500") as daemon:
        await killed_early(daemon)
    with child(tmp_path / "killed", *durable) as daemon:
        killed = await everything(daemon, outcomes)
    with child(tmp_path / "memory", *overrides(broker, topics, scheme, None)) as daemon:
        found = await everything(daemon, outcomes)
    assert (killed["models"], killed["folds"]) == (found["models"], found["folds"])

    samples = found["samples"]
    predictions = [d for side, d in records if side == "predictions" and d["fold"] in range(FOLDS)]
    assert value(samples, "predictions_wrong_fold_total") == len(predictions) - outcomes
    topic = topics["predictions"]
    assert value(samples, "records_invalid_total", reason="invalid_fold", topic=topic) == 2
    assert value(samples, "join_identities_violated") == 0
    for model in MODELS:
        shares = [float(np.mean(hits[model][fold])) for fold in range(FOLDS)]
        for fold, share in enumerate(shares):
            labels = {"model": model, "fold": str(fold)}
            assert value(samples, "fold_outcomes_total", **labels) == len(hits[model][fold])
            assert value(samples, "fold_accuracy_ratio", forgetting="landmark", **labels) == pytest.approx(
                share
            )
        of_model = {"model": model, "forgetting": "landmark"}
        assert value(samples, "accuracy_ratio", **of_model) == pytest.approx(np.mean(shares))
        assert value(samples, "fold_accuracy_deviation", **of_model) == pytest.approx(np.std(shares, ddof=1))
        assert value(samples, "folds_evaluated", model=model) == FOLDS
        for pair in found["folds"]["pairs"]:
            if pair["first"] == model:
                other = [float(np.mean(hits[pair["second"]][fold])) for fold in range(FOLDS)]
                wins = sum(one > two for one, two in zip(shares, other, strict=True))
                assert pair["sign"]["wins"] == wins
                expected = binomtest(wins, wins + pair["sign"]["losses"]).pvalue
                assert pair["sign"]["p"] == pytest.approx(expected)
    assert found["folds"]["ranks"]["diagram"].startswith("<svg")

    for command in ("verify", "show"):
        said = await asyncio.to_thread(of_state, command, tmp_path / "state")
        assert "a" in said
        assert SEPARATOR not in said

    dumped(broker, topics, PARTITIONS, tmp_path / "log.jsonl")
    settings = overrides(broker, topics, scheme, None)
    replay = (await asyncio.to_thread(replayed, tmp_path / "log.jsonl", settings))["models"]
    for model in MODELS:
        live, again = found["models"][model], replay[model]
        assert {n: v for n, v in again["metrics"].items() if live["metrics"].get(n) != v} == {}
        assert again["details"] == live["details"]
