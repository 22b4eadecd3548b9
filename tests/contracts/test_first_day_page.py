"""The table of mistakes in docs/first-day.md: each message is what a command says."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.rules import examine
from streamwatch.assembly.inspection import plain_samples, sampling_settings
from streamwatch.cli import app
from streamwatch.inspection.guessing import guess
from tests.admin.test_rules import WRONG, baselines, reading
from tests.commands import CliRunner
from tests.inspection.payloads.elements import several_elements
from tests.inspection.payloads.envelopes import framed
from tests.inspection.payloads.ids import composite, upper_case_ids
from tests.inspection.story import Maker

PAGE = Path(__file__).parents[2] / "docs" / "first-day.md"
NOWHERE = ["-s", "kafka.bootstrap_servers=127.0.0.1:1", "-s", "topics.predictions=p", "-s", "topics.labels=l"]


def command(*arguments: str) -> Callable[[], str]:
    return lambda: CliRunner().invoke(app, list(arguments)).output


def check(override: str) -> Callable[[], str]:
    return command("check", *NOWHERE, "-s", override)


def unnamed_registry() -> str:
    settings = sampling_settings(None, "127.0.0.1:1", None, [])
    return "\n".join(asyncio.run(plain_samples(framed().topics, settings)).problems)


def guessed(make: Maker) -> Callable[[], str]:
    return lambda: "\n".join(guess(make().sort().topics).problems)


def rule(name: str) -> Callable[[], str]:
    given = dict(WRONG[name][0])
    text = given.pop("text", "")
    return lambda: doctor(Facts(reading(str(text)), **given))


def doctor(facts: Facts) -> str:
    return "\n".join(f"{found.observation} {found.cause} {found.change}" for found in examine(facts))


def disjoint(predicted: str, true: str) -> Callable[[], str]:
    classes = {"predicted_class": predicted.split(), "true": true.split()}
    return lambda: doctor(Facts(reading(""), details={"m": {"classes_disjoint": classes}}))


SHOWN: Mapping[tuple[str, str], Callable[[], str]] = {
    ("a setting is misspelt", "every command"): command("check", *NOWHERE, "-s", "join.horizn=3d"),
    ("a setting has the name of an older version", "every command"): check("join.tombstone_horizon=3d"),
    ("a duration has no unit", "every command"): check("join.horizon=3"),
    ("a path does not start with `value`, `key`, …", "every command"): check(
        "topics.labels={name: l, mapping: {id: id}}"
    ),
    ("an array index is negative", "every command"): check(
        "topics.labels={name: l, mapping: {label: 'value.a[-1]'}}"
    ),
    ("a key field is inside an array", "every command"): check(
        "topics.labels={name: l, mapping: {id: 'key.a[0]'}}"
    ),
    ("a parameter of a detector is misspelt", "every command"): check(
        "monitors.detectors_by_model={'fraud-*': {page_hinkley: {treshold: 3}}}"
    ),
    ("an envelope is misspelt", "every command"): check("topics.labels={name: l, envelope: cloudevent}"),
    ("a score has no threshold", "every command"): check(
        "topics.predictions={name: p, mapping: {prediction: {score: value.p}}}"
    ),
    ("a format needs a schema, but none is set", "`check`"): check("topics.labels={name: l, format: avro}"),
    ("the type of a receiver is misspelt", "every command"): check(
        "alerts.receivers=[{name: a, type: slak}]"
    ),
    ("a parameter is out of range", "every command"): check("monitors.forgetting=[{fading: {alpha: 1.2}}]"),
    ("no broker answers", "`inspect`"): command("inspect", "-b", "127.0.0.1:1", "-t", "p", "-t", "l"),
    ("values are Avro, but no registry is set", "`inspect`"): unnamed_registry,
    ("an alias of a class is empty", "`check`"): command(
        "check", *NOWHERE, "-s", "topics.labels={name: l, mapping: {classes: {a: ''}}}"
    ),
    ("one side writes ids in capitals", "`inspect`"): guessed(upper_case_ids),
    ("the key combines several parts", "`inspect`"): guessed(composite),
    ("a record holds several predictions", "`inspect`"): guessed(several_elements),
    ("values are not plain JSON", "`inspect`"): guessed(framed),
    ("ids of predictions have a prefix", "`doctor -c`"): rule("nothing_joins"),
    ("one side has classes 0 and 1, the other no and yes", "`doctor`"): disjoint("0 1", "no yes"),
    ("a score is mapped as the class", "`doctor`"): disjoint("0.93 0.5", "fraud"),
    ("labels have no class", "`doctor`"): rule("undecodable"),
    ("labels take longer than predictions wait", "`doctor`"): rule("horizon_short"),
    ("a rare class is judged by accuracy", "`doctor`"): lambda: doctor(Facts(reading(baselines(0.98, 0.99)))),
    ("labels still arrive when predictions have expired", "`doctor`"): rule("labels_cut_off"),
    ("labels have stopped while predictions go on", "`doctor`"): rule("labels_stopped"),
    ("a timestamp in seconds is read as milliseconds", "`doctor`"): rule("times_misread"),
    ("Kafka's timestamps of a topic are set in seconds", "`doctor`"): rule("records_misdated"),
    ("a model has stopped predicting", "`doctor`"): rule("predictions_stopped"),
    ("labels arrive sorted by class", "`doctor`"): rule("labels_sorted"),
    ("a topic with predictions is missing from the settings", "`doctor`"): rule("labels_orphaned"),
    ("the predictions change before labels arrive", "`doctor`"): rule("early_hint_stands"),
    ("the field of a segment is an id", "`doctor`"): rule("segments_full"),
    ("two versions of a model have one name", "`doctor`"): rule("predictions_repeated"),
    ("the field of the model is an id of each run", "`doctor`"): rule("limits_reached"),
    ("more predictions wait than the limit allows", "`doctor`"): rule("evicted"),
    ("there are too few outcomes for alarms", "`doctor`"): rule("detectors_silent"),
    ("a receiver refuses notifications", "`doctor`"): rule("undelivered"),
    ("the clocks of producers differ", "`doctor`"): rule("out_of_order"),
    ("what writes labels has a clock that is behind, or writes local time", "`doctor`"): rule(
        "labels_before_predictions"
    ),
    ("the clock of the machine is wrong", "`doctor`"): rule("clock_behind"),
    ("a transaction in Kafka stays open", "`doctor`"): rule("held_back"),
    ("retention deletes records before they are read", "`doctor`"): rule("log_lost"),
    ("more records are written than evaluated", "`doctor`"): rule("lag_grows"),
    ("the disk fills up", "`doctor`"): rule("disk_low"),
    ("the state is in memory only", "`doctor`"): rule("not_durable"),
    ("no daemon answers at the URL", "`doctor`"): command("doctor", "--url", "http://127.0.0.1:1"),
}


def rows() -> dict[tuple[str, str], str]:
    """Message by mistake and command."""
    table = PAGE.read_text().partition("## Common mistakes")[2]
    cells = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    shown = re.compile(r"`(.*)`|<code>(.*)</code>")
    return {
        (mistake.strip(), reported_by.strip()): html.unescape(next(filter(None, found.groups())))
        for mistake, reported_by, message in cells
        if (found := shown.fullmatch(message.strip()))
    }


def test_every_row_of_the_page_is_tried_here() -> None:
    assert rows().keys() == SHOWN.keys()


@pytest.mark.slow
@pytest.mark.parametrize("mistake", SHOWN, ids=lambda mistake: f"{mistake[0]} ({mistake[1]})")
def test_a_mistake_is_answered_with_what_the_page_says(
    mistake: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rows()[mistake] in SHOWN[mistake]()
