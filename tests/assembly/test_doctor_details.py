"""What `streamwatch doctor` asks a daemon for: the documents of models with something to say."""

from __future__ import annotations

import asyncio

import pytest

from streamwatch.admin.doctor.facts import read
from streamwatch.assembly.doctor import consult, suspects
from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Report
from streamwatch.edge.daemon_api import Address, NotThere
from tests.edge.web.http_faces import BEGAN_MS, FakeHealth, serving

HINT = {"early_hints": {"hint": {"class": "fraud", "more": True, "timestamp_seconds": 1_760_000_000.0}}}
DELAYS = {"label_delays": {"labelled": [0.0] * 22 + [0.5]}}


@pytest.mark.parametrize("name", ["m", "..", "a/b ü?#", "%2E"])
async def test_what_is_stated_of_one_model_alone_is_fetched_whatever_its_name(name: str) -> None:
    families = [
        family("early_hint", [((name,), 1.0), (("calm",), 0.0)]),
        family("predictions_labelled_ratio", [((name,), 0.5)]),
    ]
    async with serving(FakeHealth()) as server:
        server.publish(Report(families, BEGAN_MS, {name: {**HINT, **DELAYS}, "calm": {}}))
        found = await consult(Address(server.url), 0.0)
    of_model = [(one.rule, one.observation) for one in found if one.subject == f"model {name}"]
    assert [rule for rule, _ in of_model] == ["labels_cut_off", "early_hint_stands"]
    assert "'fraud' is predicted more often" in of_model[1][1]


def test_models_with_a_hint_come_first_and_a_hundred_are_asked_for_at_most() -> None:
    lines = [f'streamwatch_predictions_labelled_ratio{{model="m{number:03}"}} 0.5' for number in range(150)]
    lines += ['streamwatch_early_hint{model="m149"} 1', 'streamwatch_early_hint{model="z"} 0']
    chosen = suspects(read("\n".join(lines) + "\n"))
    assert chosen == ["m149", *(f"m{number:03}" for number in range(99))]


async def test_a_document_that_is_not_there_is_distinguished_from_a_daemon_that_does_not_answer() -> None:
    async with serving(FakeHealth()) as server:
        with pytest.raises(NotThere, match="answered 404"):
            await asyncio.to_thread(Address(server.url).get, "/api/v1/models/gone")
