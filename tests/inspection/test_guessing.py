"""Mappings guessed from payloads of many shapes, and what they make of the sample."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy.stats.contingency import association
from sklearn.metrics import roc_auc_score

from streamwatch.assembly import specs
from streamwatch.assembly.inspection import inspect
from streamwatch.assembly.topics import recorded_topics
from streamwatch.history.replay.replay import ReplaySpec, replay
from streamwatch.inspection.classes import cramers_v
from streamwatch.inspection.guessed import Choice, TopicGuess
from streamwatch.inspection.guessing import guess
from streamwatch.inspection.words import area_under_roc
from streamwatch.settings import Settings
from streamwatch.settings.loading import parse
from tests.inspection.payloads.classes import forecast_and_actual
from tests.inspection.payloads.every import EVERY
from tests.inspection.payloads.ids import sequences
from tests.inspection.payloads.models import flat_challenger, shadow_scoring
from tests.inspection.payloads.names import flat, fraud
from tests.inspection.payloads.rarity import ads
from tests.inspection.story import Maker, Payload, story
from tests.layouts import DEFAULT
from tests.tiers import by_tier

REPLAYED = (flat, fraud, ads, sequences, forecast_and_actual, shadow_scoring, flat_challenger)


def named(make: Maker) -> str:
    return make.__name__


def locations(others: object) -> list[tuple[str | None, str | None, bool]]:
    """Model, prediction and whether it may be missing, of further mappings."""
    return [
        (
            each.model.location if isinstance(each.model, Choice) else None,
            each.prediction.location if isinstance(each.prediction, Choice) else None,
            each.optional,
        )
        for each in others  # type: ignore[attr-defined]
    ]


def chosen(part: Any) -> Any:
    """The path of a choice, the field of a kind, the paths of further mappings, anything else as it is."""
    if isinstance(part, tuple) and (not part or isinstance(part[0], TopicGuess)):
        return locations(part)
    if isinstance(part, tuple):
        return part[0]
    return part.locations if isinstance(part, Choice) else part


def differences(payload: Payload) -> list[str]:
    """What the guess has otherwise than a person would write it."""
    found = guess(payload.topics)
    if payload.cannot:
        shown = " ".join(found.problems)
        return [word for word in payload.cannot if word not in shown] or (
            [] if shown else ["no problem was reported"]
        )
    wrong = list(found.problems)
    for side, right in (("prediction", payload.predictions), ("label", payload.labels)):
        for name, fields in right.items():
            topic = next((t for t in found.topics if t.topic == name and t.side in {side, "both"}), None)
            if topic is None:
                wrong.append(f"{name} is not taken for {side}s")
                continue
            wrong += [
                f"{name}: {field} is {chosen(getattr(topic, field))!r}, not {location!r}"
                for field, location in fields.items()
                if chosen(getattr(topic, field)) != location
            ]
    return wrong


@pytest.mark.parametrize("make", EVERY[:: by_tier(fast=6, rotating=4, default=1, everything=1)], ids=named)
def test_a_payload_is_mapped_as_a_person_would_or_what_is_missing_is_stated(make: Maker) -> None:
    assert differences(make().sort()) == []


@pytest.mark.slow
@pytest.mark.parametrize("make", EVERY, ids=named)
def test_settings_join_every_prediction_whose_label_the_sample_has_or_problems_are_stated(
    make: Maker,
) -> None:
    payload = make().sort()
    found = inspect(payload.topics)
    if payload.cannot:
        assert found.problems
        return
    assert found.text is not None
    Settings(**parse(found.text))
    assert found.problems == []
    assert found.sample is not None
    assert not found.sample.invalid or make.__name__ == "three_kinds"
    assert found.sample.labels_met > 0.95 * found.sample.labels


def kcat_lines(payload: Payload) -> list[str]:
    return [
        json.dumps(
            {
                "topic": record.topic, "partition": 0, "offset": record.offset, "tstype": "create",
                "ts": record.timestamp, "broker": 0,
                "headers": [part for name, content in record.headers for part in (name, content.decode())],
                "key": None if record.key is None else record.key.decode(),
                "payload": None if record.value is None else record.value.decode(),
            }
        )
        for records in payload.topics.values()
        for record in records
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("make", REPLAYED, ids=named)
def test_a_replay_of_the_sample_joins_at_the_rate_shown(make: Maker, tmp_path: Path) -> None:
    payload = make().sort()
    found = inspect(payload.topics)
    assert found.text is not None
    assert found.sample is not None
    settings = Settings(**parse(found.text))
    recording = tmp_path / "sample.kcat"
    recording.write_text("\n".join(kcat_lines(payload)))
    result = replay(
        ReplaySpec(
            [recording],
            "kcat",
            recorded_topics(settings),
            closed=True,
            join=specs.join_spec(settings),
            merge=specs.merge_spec(settings),
            monitors=DEFAULT,
        )
    )
    assert not result.bad
    assert result.outcomes == found.sample.joined
    assert result.outcomes + result.pending == found.sample.predictions


def test_one_of_two_close_candidates_is_named_beside_the_other_in_the_settings() -> None:
    payload = Payload("two ids that are as good")
    for item in story(301):
        value = {"request_id": item.uuid, "event_id": f"e{item.number}", "prediction": item.predicted}
        payload.add("p", item.made_ms, value)
        value = {"request_id": item.uuid, "event_id": f"e{item.number}", "label": item.true}
        payload.add("l", item.labelled_ms, value)
    found = inspect(payload.sort().topics)
    assert found.text is not None
    assert "else value.event_id" in found.text


def test_a_horizon_beyond_the_default_is_written_and_a_shorter_one_is_only_mentioned() -> None:
    def settings(delay_days: float) -> str:
        payload = Payload("late labels")
        for item in story(302, delay_ms=round(delay_days * 86_400_000)):
            payload.add("p", item.made_ms, {"id": item.uuid, "prediction": item.predicted})
            payload.add("l", item.labelled_ms, {"id": item.uuid, "label": item.true})
        return inspect(payload.sort().topics).text or ""

    assert parse(settings(20))["join"] == {"horizon": "90d"}
    short = settings(0.1)
    assert "join" not in parse(short)
    assert "join: {horizon: 12h}" in short


def test_labels_that_share_no_id_with_predictions_are_shown_with_theirs_side_by_side() -> None:
    payload = Payload("a part of the labels is of somebody else")
    for item in story(303):
        payload.add("p", item.made_ms, {"id": item.uuid, "prediction": item.predicted})
        prefix = "" if item.number % 4 else "other-"
        payload.add("l", item.labelled_ms, {"id": prefix + item.uuid, "label": item.true})
    found = inspect(payload.sort().topics)
    assert found.sample is not None
    assert all(id_.startswith("other-") for id_ in found.sample.lone_labels)
    assert [id_.removeprefix("other-") for id_ in found.sample.lone_labels][:1] != []
    assert found.sample.rate == pytest.approx(0.75)


def test_a_topic_that_belongs_to_neither_side_is_named() -> None:
    payload = Payload("three topics, one of something else")
    for item in story(304):
        payload.add("p", item.made_ms, {"id": item.uuid, "prediction": item.predicted})
        payload.add("l", item.labelled_ms, {"id": item.uuid, "label": item.true})
        payload.add("clicks", item.made_ms, {"page": f"/{item.number % 40}", "session": f"s{item.number}"})
    assert guess(payload.sort().topics).problems == ("topic clicks: its ids meet those of no other topic",)


def test_an_empty_topic_is_named() -> None:
    assert "topic p: no record was found" in guess({"p": [], "l": []}).problems


def test_the_area_under_the_curve_is_that_of_scikit_learn() -> None:
    chance = random.Random(5)
    positive = [round(chance.betavariate(3, 2), 1) for _ in range(80)]
    negative = [round(chance.betavariate(2, 3), 1) for _ in range(120)]
    expected = roc_auc_score([1] * 80 + [0] * 120, positive + negative)
    assert area_under_roc(positive, negative) == pytest.approx(expected, abs=1e-12)


def test_cramers_v_is_that_of_scipy_but_for_the_correction_of_its_bias() -> None:
    chance = random.Random(6)
    pairs = Counter(
        (x := chance.choice("abc"), x if chance.random() < 0.6 else chance.choice("abc")) for _ in range(900)
    )
    table = [[pairs[row, column] for column in "abc"] for row in "abc"]
    phi = association(table, method="cramer") ** 2 * 2
    corrected = max(0.0, phi - 4 / 899) / (2 - 4 / 899)
    assert cramers_v(pairs) == pytest.approx(corrected**0.5, abs=1e-9)
