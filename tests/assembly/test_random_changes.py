"""Settings drawn at chance on a state that has everything on: what is kept is as it was, to the last bit.

Each start under other settings is held against `check`, against the state before, against a start that was
killed before its first commit, and against a restart.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from msgspec import structs
from pydantic import ValidationError

from streamwatch.admin.state_verify import verified
from streamwatch.assembly import specs
from streamwatch.assembly.changes import check_changes
from streamwatch.core.estimators.registers.segments import register as segments
from streamwatch.core.estimators.set import ModelSnapshot, decode
from streamwatch.core.pipeline.pipeline import PipelineState, decoded
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.settings import Settings, SettingsError
from tests.assembly.lives import DOCUMENT, START_MS, Life, Row, with_value

pytestmark = pytest.mark.slow

MINUTE_MS: Final = 60_000
FIELD: Final = "topics.predictions.mapping."
FIRST: Final[Mapping[str, Any]] = {
    "topics.predictions": [{"name": "predictions"}],
    "join.horizon": "2h",
    "join.conflicts": "both",
    "join.order": "prediction_time",
    "join.reorder_window": "10m",
    "monitors.max_models": 20,
    "monitors.max_classes": 50,
    "monitors.comparisons": [{"champion": "m", "challengers": ["*"]}],
    "monitors.utility_by_model": {"m": "balanced"},
    "monitors.early_hints": {"max_models": 20},
    "monitors.label_delays": True,
    f"{FIELD}segments": ["country", "tier"],
    f"{FIELD}label_probability": "value.pi",
    f"{FIELD}min_label_probability": 0.1,
}
"""Settings of the first start."""
OTHERS: Final[Mapping[str, Any]] = {
    "join.horizon": ["30m", "12h"],
    "join.early_horizon": ["1m", "2h"],
    "join.dedup_horizon": ["10m", "12h"],
    "join.max_pending": [20, 60],
    "join.max_labels": [5, 40],
    "join.max_dedup_entries": [10, 100],
    "join.on_expiry": [{"assume": "a"}, "discard"],
    "join.order": ["resolution", "prediction_time"],
    "join.max_reordered": [3, 30],
    "join.conflicts": ["first", "both"],
    "monitors.detectors": [[{"page_hinkley": {"threshold": 2.0}}, "adwin"], ["page_hinkley", "adwin"]],
    "monitors.confidence_delta": [0.1, 0.05],
    "monitors.comparisons": [[], [{"champion": "n", "challengers": ["m", "o"]}]],
    "monitors.max_comparisons": [1, 2],
    "monitors.history_days": [0, 2],
    "monitors.segments.max_total": [4, 12],
    "monitors.segments.max_values": [1, 2],
    "monitors.early_hints": [None, {"max_models": 2}, {"delta": 0.1, "max_models": 20}],
    "monitors.label_delays": [False, True],
    "monitors.cohort_verdicts": [False, True],
    "monitors.shadow_max_classes": [0, 4],
    "monitors.max_models": [2, 3, 60],
    "monitors.max_classes": [3, 60],
    f"{FIELD}segments": [["country"], []],
    f"{FIELD}classes": [{"c": "b"}, {}],
    "topics.labels": [["labels", "more-labels"], ["labels"]],
}
"""Other values; none needs a kernel of its own."""


def drawn(chance: Random, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Change one to three settings to others that are allowed together."""
    while True:
        keys = chance.sample(list(OTHERS), chance.choice((1, 1, 2, 3)))
        changed = {**settings, **{key: chance.choice(OTHERS[key]) for key in keys}}
        document = document_of(changed)
        try:
            parsed = Settings(**document)
            specs.monitors_spec(parsed)
            specs.join_spec(parsed)
        except (ValidationError, SettingsError):
            continue
        if changed != settings:
            return changed


def document_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = DOCUMENT
    for key, value in settings.items():
        document = with_value(document, key, value)
    return document


class Traffic:
    """Predictions of five models, revised ones among them, and labels: late, early, corrected or missing."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._now_ms, self._ids = START_MS, 0
        self._offsets = {"predictions": 0, "labels": 0, "more-labels": 0}
        self._later: list[tuple[int, int, str, dict[str, Any]]] = []

    def next(self, ids: int) -> list[Row]:
        """The records of the next ids, in order of time."""
        chance, rows = self._chance, list[Row]()
        for _ in range(ids):
            self._now_ms += chance.choice((1, 1_000, MINUTE_MS, MINUTE_MS, 3 * MINUTE_MS))
            self._ids += 1
            truth = chance.choice("aaabbc")
            for model in "mnopq"[: chance.randrange(1, 6)]:
                made: dict[str, Any] = {
                    "id": f"i{self._ids}",
                    "model": model,
                    "pi": chance.choice((0.2, 1.0)),
                }
                made |= {"prediction": truth if chance.random() < 0.7 else chance.choice("abc")}
                made |= {"country": chance.choice("xyz"), "tier": chance.choice("12")}
                made |= {"scores": {"a": 0.25, "b": 0.5, "c": 0.25}} if chance.random() < 0.7 else {}
                self._put(0, "predictions", made)
                if chance.random() < 0.1:
                    again = {**made, "prediction": chance.choice("abc")}
                    self._put(chance.randrange(10 * MINUTE_MS), "predictions", again)
            label: dict[str, Any] = {"id": f"i{self._ids + chance.choice((0, 0, 0, 3))}", "label": truth}
            label |= {"model": "m"} if chance.random() < 0.1 else {}
            topic = chance.choice(("labels", "labels", "more-labels"))
            if chance.random() < 0.8:
                self._put(chance.choice((0, 1, 20, 90)) * MINUTE_MS, topic, label)
            due = sorted(each for each in self._later if each[0] <= self._now_ms)
            self._later = [each for each in self._later if each[0] > self._now_ms]
            rows += [self._row(topic, record) for _, _, topic, record in due]
        return rows

    def _put(self, delay_ms: int, topic: str, record: dict[str, Any]) -> None:
        number = self._ids * 100 + len(self._later)
        self._later.append((self._now_ms + delay_ms, number, topic, record))

    def _row(self, topic: str, record: Mapping[str, Any]) -> Row:
        offset = self._offsets[topic]
        self._offsets[topic] += 1
        return Row(topic, 0, offset, self._now_ms, json.dumps(record).encode())


def kept(life: Life) -> tuple[PipelineState, dict[str, ModelSnapshot], bytes]:
    """All that a commit would hold, without entries of the join: their numbers are in the first part."""
    checkpoint = life.state.checkpoint
    monitors = checkpoint.monitors
    models = {name: decode(monitors.snapshot(name)) for name in sorted(monitors.models())}
    compared = b"" if monitors.comparisons is None else monitors.comparisons.snapshot()
    return decoded(checkpoint.pipeline.snapshot()), models, compared


@pytest.mark.parametrize("seed", range(2))
def test_what_is_kept_is_as_it_was_and_what_begins_anew_is_said(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    traffic, settings, directory = Traffic(chance), dict(FIRST), tmp_path / "state"
    life = Life(document_of(settings), directory)
    for number in range(3):
        for _ in range(2):
            life.feed(traffic.next(chance.randrange(10, 40)))
            life.commit()
        assert life.state.checkpoint.pipeline.identities() == []
        before = kept(life)
        life.close()
        again = Life(document_of(settings), directory)
        assert (again.events("setting_changed"), kept(again)) == ([], before)
        again.close()
        assert [check.faults for check in verified(directory) if not check.good] == []
        changed = drawn(chance, settings)
        document = document_of(changed)
        [result] = check_changes(Settings.model_validate({**document, "state": {"directory": directory}}))
        try:
            life = Life(document, directory)
        except StateRefused:
            assert not result.good
            life = Life(document_of(settings), directory)
            continue
        assert result.good
        held_against_what_was_said(life, before, result.details)
        begun = kept(life)
        life.feed([])
        life.close()  # killed before its first commit: nothing was changed
        back = Life(document_of(settings), shutil.copytree(directory, tmp_path / f"back{number}"))
        assert kept(back) == before
        back.close()
        life = Life(document, directory)
        assert kept(life) == begun
        settings = changed
    life.close()


def held_against_what_was_said(
    life: Life, before: tuple[Any, dict[str, ModelSnapshot], bytes], said: Any
) -> None:
    """Compare the sections of every model with those before, and what is missing with what `check` said."""
    told = [f"{event['setting']}: {event['effect']}" for event in life.events("setting_changed")]
    assert [line for line in said if line in told] == told
    resumed = life.state.resumed
    for start, names in (
        ("begin anew, with no outcomes: ", resumed.restarted),
        ("are no more: ", resumed.dropped),
    ):
        assert [line for line in said if line.startswith(start)] == (
            [start + ", ".join(names)] if names else []
        )
    now = kept(life)[1]
    gone = {*resumed.begun, *resumed.refused}
    assert now.keys() == before[1].keys() - gone
    text = " ".join(said)
    for name, model in now.items():
        was = before[1][name]
        assert (model.classes, model.first_ms, model.delays) == (was.classes, was.first_ms, was.delays)
        for section in model.sections.keys() & was.sections.keys():
            changes_alone = section.startswith("shadow/") and "shadow classifiers" in text
            changes_alone |= section.startswith("segments(") and "segments.max_total" in text
            values = [model.sections[section], was.sections[section]]
            if section.startswith("segments(") and "named no more ends" in text:
                values = [_still_named(life, value) for value in values]
            assert changes_alone or values[0] == values[1], (section, said)


def _still_named(life: Life, section: bytes) -> bytes:
    """Segments of a model without those that mappings name no more."""
    named = specs.segment_names(life.settings)
    found = segments.decode(section, 10_000)
    kept = [each for each in found.segments if each.name in named]
    return segments.encode(structs.replace(found, segments=kept))
