"""Folds through Kafka: who is evaluated on what is recomputed from the records; restarts and replay agree."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from streamwatch.core.records.events import SEPARATOR
from streamwatch.folds import Scheme, roles
from tests.integration.conftest import Broker
from tests.integration.running import Child, value
from tests.integration.three_lives import answered, lived

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


def recomputed(records: list[tuple[str, dict[str, Any]]], scheme: Scheme) -> dict[str, dict[int, list[bool]]]:
    """Hits of every fold of every model, in the order of ids."""
    truth = {document["id"]: document["label"] for side, document in records if side == "labels"}
    hits: dict[str, dict[int, list[bool]]] = {m: {f: [] for f in range(FOLDS)} for m in MODELS}
    for side, document in records:
        fold = document.get("fold")
        if side == "predictions" and fold in range(FOLDS) and roles(str(document["id"]), fold, scheme).tests:
            hits[document["model"]][fold].append(document["prediction"] == truth[document["id"]])
    return hits


async def folds_said(daemon: Child) -> Any:
    """What a daemon says of folds."""
    folds = await answered(daemon, "api/v1/folds?forgetting=landmark")
    folds.pop("published_timestamp_seconds")
    return folds


def of_state(command: str, state: Path) -> str:
    """What a command says of a state, in which it must find nothing wrong."""
    line = [sys.executable, "-m", "streamwatch", "state", command, "--directory", str(state)]
    done = subprocess.run(line, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.validation)
async def test_folds_are_evaluated_where_they_test_and_told_with_their_spread(
    broker: Broker, tmp_path: Path, scheme: Scheme
) -> None:
    records = list(told(scheme, 3))
    hits = recomputed(records, scheme)
    outcomes = sum(len(of_fold) for folds in hits.values() for of_fold in folds.values())
    lives = await lived(
        broker,
        tmp_path,
        [(at, *record) for at, record in enumerate(records)],
        [
            "monitors.series=all",
            f"folds.scheme={scheme.validation}",
            f"folds.k={scheme.folds}",
            f"folds.prequential={str(scheme.prequential).lower()}",
        ],
        outcomes=outcomes,
        commit_events=500,
        hours=5,
        say=folds_said,
    )
    samples, _, folds = lives.whole

    predictions = [d for side, d in records if side == "predictions" and d["fold"] in range(FOLDS)]
    assert value(samples, "predictions_wrong_fold_total") == len(predictions) - outcomes
    topic = lives.topics["predictions"]
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
        for pair in folds["pairs"]:
            if pair["first"] == model:
                other = [float(np.mean(hits[pair["second"]][fold])) for fold in range(FOLDS)]
                wins = sum(one > two for one, two in zip(shares, other, strict=True))
                assert pair["sign"]["wins"] == wins
                expected = binomtest(wins, wins + pair["sign"]["losses"]).pvalue
                assert pair["sign"]["p"] == pytest.approx(expected)
    assert folds["ranks"]["diagram"].startswith("<svg")

    for command in ("verify", "show"):
        said = await asyncio.to_thread(of_state, command, tmp_path / "state")
        assert "a" in said
        assert SEPARATOR not in said

    lives.check_replay(MODELS)
