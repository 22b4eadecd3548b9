"""Predictions that are revised, through Kafka: recomputed from the records; restarts and replay agree."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Broker
from tests.integration.running import Child, value
from tests.integration.three_lives import answered, lived

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


async def details_said(daemon: Child) -> dict[str, Any]:
    """What a daemon says of each model alone."""
    return {model: (await answered(daemon, f"api/v1/models/{model}"))["details"] for model in MODELS}


def faded(values: list[bool]) -> float:
    """Mean with weights alpha^age."""
    weights = [ALPHA**age for age in range(len(values) - 1, -1, -1)]
    return sum(w for w, v in zip(weights, values, strict=True) if v) / sum(weights)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("conflicts", ["last", "both"])
async def test_what_is_revised_counts_as_chosen_live_killed_and_replayed(
    broker: Broker, tmp_path: Path, conflicts: str
) -> None:
    recorded = told(3)
    lives = await lived(
        broker,
        tmp_path,
        recorded.records,
        [
            f"join.conflicts={conflicts}",
            f"join.horizon={HORIZON_MS}ms",
            f"monitors.revisions.alpha={ALPHA}",
        ],
        outcomes=sum(map(len, recorded.outcomes.values())),
        commit_events=200,
        hours=6,
        say=details_said,
    )
    samples, _, alone = lives.whole

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
            assert "revisions" not in alone[model]
            continue
        revised = [last != first for _, first, last, _, _ in outcomes]
        first, last = faded(firsts), faded(lasts)
        expected = dict(zip(REVISED, (first, last, last - first, faded(revised)), strict=True))
        assert {name: value(samples, name, model=model) for name in REVISED} == pytest.approx(expected)
        said = alone[model]["revisions"]
        assert (said["outcomes"], said["revised"]) == (len(outcomes), sum(revised))
        assert said["gained"] - said["lost"] == sum(lasts) - sum(firsts)

    lives.check_replay(MODELS)
