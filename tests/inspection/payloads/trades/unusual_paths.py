"""Ids and classes at unusual paths, and records that no mapping reads."""

from __future__ import annotations

from tests.inspection.payloads.parts import batches
from tests.inspection.story import Maker, Payload, story


def bare_words() -> Payload:
    found = Payload(
        "the value is nothing but the class",
        predictions={"wafer-maps": {"id": "key", "prediction": "value"}},
        labels={"microscope": {"id": "value.wafer", "label": "value.defect"}},
    )
    for item in story(821, classes=("none", "scratch", "ring"), weights=(0.6, 0.2, 0.2)):
        wafer = f"L{item.number // 25:03d}-{item.number % 25:02d}"
        found.add("wafer-maps", item.made_ms, item.predicted, key=wafer)
        found.add("microscope", item.labelled_ms, {"wafer": wafer, "defect": item.true, "tool": item.country})
    return found


def class_in_a_header() -> Payload:
    found = Payload(
        "the answer was put into a header of the scanned record; a field called arrivedAt",
        predictions={"bags": {"id": "value.tag", "prediction": "header:ml-route"}},
        labels={"piers": {"id": "value.bagTag", "label": "value.arrivedAt"}},
    )
    for item in story(822, classes=("pier-a", "pier-b", "pier-c"), weights=(0.4, 0.4, 0.2)):
        value = {"tag": f"0220{item.number:06d}", "belt": item.number % 14, "kg": item.amount}
        found.add("bags", item.made_ms, value, headers={"ml-route": item.predicted, "trace": item.uuid})
        value = {"bagTag": f"0220{item.number:06d}", "arrivedAt": item.true, "flight": item.user}
        found.add("piers", item.labelled_ms, value)
    return found


def json_keys() -> Payload:
    found = Payload(
        "keys are objects, the same on both sides",
        predictions={"pricing": {"id": "key.policyId", "prediction": "value.tier"}},
        labels={"claims-tier": {"id": "key.policyId", "label": "value.tier"}},
    )
    for item in story(823, classes=("bronze", "silver", "gold"), weights=(0.5, 0.3, 0.2)):
        key = f'{{"policyId":"P{item.number}","country":"{item.country}"}}'
        found.add("pricing", item.made_ms, {"tier": item.predicted, "km": item.amount}, key=key)
        found.add("claims-tier", item.labelled_ms, {"tier": item.true, "by": item.user}, key=key)
    return found


def reports_of_players() -> Payload:
    found = Payload(
        "numbers of reports, of matches and of players, all beyond a double",
        predictions={"anticheat": {"id": "value.report_id", "prediction": "value.flagged"}},
        labels={"bans": {"id": "value.report_id", "label": "value.banned"}},
    )
    for item in story(824, classes=("False", "True"), weights=(0.8, 0.2)):
        ids = {
            "report_id": 7_300_000_000_000_000_000 + item.number * 13,
            "match_id": 7_200_000_000_000_000_000 + item.number // 4,
            "player_id": 7_100_000_000_000_000_000 + int(item.user[1:]),
        }
        found.add(
            "anticheat", item.made_ms, ids | {"flagged": item.predicted == "True", "kills": item.number % 9}
        )
        found.add(
            "bans", item.labelled_ms, ids | {"banned": item.true == "True", "appealed": item.number % 11 == 0}
        )
    return found


def tickets_that_are_open_first() -> Payload:
    found = Payload(
        "a ticket is written when it is opened and again when it is ruled on",
        predictions={"cameras": {"id": "value.ticket", "prediction": "value.expected"}},
        labels={"tickets": {"id": "value.ticket", "label": "value.ruling", "optional": True}},
    )
    for item in story(825, classes=("valid", "void"), weights=(0.7, 0.3)):
        found.add("cameras", item.made_ms, {"ticket": item.number + 50_000, "expected": item.predicted})
        opened = {"ticket": item.number + 50_000, "status": "open", "ruling": None}
        found.add("tickets", item.made_ms + 60_000, opened)
        ruled = {"ticket": item.number + 50_000, "status": "closed", "ruling": item.true}
        found.add("tickets", item.labelled_ms + 120_000, ruled)
    return found


def survey_by_key() -> Payload:
    found = Payload(
        "tiles of a map: a field here, the key there",
        predictions={"satellite": {"id": "value.tile", "prediction": "value.crop.top"}},
        labels={"survey": {"id": "key", "label": "value.surveyed.crop"}},
    )
    for item in story(826, classes=("wheat", "maize", "fallow"), weights=(0.5, 0.3, 0.2)):
        tile = f"T32U{item.country}/2025/{item.number:04d}"
        value = {
            "tile": tile,
            "crop": {"top": item.predicted, "confidence": item.score},
            "cloud": item.number % 4,
        }
        found.add("satellite", item.made_ms, value)
        value = {"surveyed": {"crop": item.true, "hectares": item.amount}, "team": item.user}
        found.add("survey", item.labelled_ms, value, key=tile)
    return found


def two_topics_of_models() -> Payload:
    found = Payload(
        "two teams, each with its own names, and labels for both",
        predictions={
            "team-red": {"id": "value.ref", "prediction": "value.out.verdict"},
            "team-blue": {"id": "value.document_ref", "prediction": "value.predicted"},
        },
        labels={"lawyers": {"id": "value.ref", "label": "value.clause"}},
    )
    clauses = ("liability", "payment", "other")
    for item in story(827, classes=clauses, weights=(0.3, 0.3, 0.4)):
        value = {"ref": item.uuid, "out": {"verdict": item.predicted, "by": f"red-{1 + item.number % 2}"}}
        found.add("team-red", item.made_ms, value)
        predicted = item.true if item.number % 6 else "other"
        found.add(
            "team-blue",
            item.made_ms,
            {"document_ref": item.uuid, "predicted": predicted, "pages": item.number % 40},
        )
        found.add("lawyers", item.labelled_ms, {"ref": item.uuid, "clause": item.true, "lawyer": item.user})
    return found


def whole_numbers_with_zeros() -> Payload:
    found = Payload(
        "numbers of parts with zeros in front here, without there", cannot=("value.partNo", "value.part")
    )
    for item in story(828, classes=("keep", "scrap"), weights=(0.8, 0.2)):
        found.add(
            "casting", item.made_ms, {"partNo": f"{4_711 + item.number:010d}", "advice": item.predicted}
        )
        found.add("x-ray", item.labelled_ms, {"part": 4_711 + item.number, "advice": item.true})
    return found


def readings_of_a_building() -> Payload:
    found = Payload(
        "one record for all lifts of a building, ids in its elements",
        predictions={"lifts": {"id": "value.lifts[].run", "prediction": "value.lifts[].forecast.state"}},
        labels={"service": {"id": "value.run", "label": "value.state"}},
    )
    for calls in batches(story(829, classes=("ok", "fault"), weights=(0.8, 0.2)), (2, 5, 3)):
        lifts = [
            {
                "run": f"{item.user}:{item.number}",
                "forecast": {"state": item.predicted, "hours": item.number % 72},
            }
            for item in calls
        ]
        found.add(
            "lifts", calls[-1].made_ms, {"building": calls[0].country, "lifts": lifts, "firmware": "4.1"}
        )
        for item in calls:
            value = {"run": f"{item.user}:{item.number}", "state": item.true, "minutes": item.number % 55}
            found.add("service", item.labelled_ms, value)
    return found


PATHS: tuple[Maker, ...] = (
    bare_words,
    class_in_a_header,
    json_keys,
    reports_of_players,
    tickets_that_are_open_first,
    survey_by_key,
    two_topics_of_models,
    whole_numbers_with_zeros,
    readings_of_a_building,
)
