"""Trades in their own words: the classes of one side are spelt otherwise on the other."""

from __future__ import annotations

from tests.inspection.story import Maker, Payload, iso, story


def grid_meters() -> Payload:
    found = Payload(
        "words here, the numbers of a form there",
        predictions={"meter-watch": {"id": "value.readingRef", "prediction": "value.assessment"}},
        labels={
            "field-checks": {
                "id": "value.readingRef",
                "label": "value.tampered",
                "classes": {"0": "normal", "1": "tamper"},
            }
        },
    )
    for item in story(811, classes=("normal", "tamper"), weights=(0.8, 0.2)):
        ref = f"{item.user}-{item.number:06d}"
        value = {
            "readingRef": ref,
            "kwh": item.amount,
            "assessment": item.predicted,
            "phase": item.number % 3,
        }
        found.add("meter-watch", item.made_ms, value)
        value = {"readingRef": ref, "tampered": int(item.true == "tamper"), "crew": item.number % 9}
        found.add("field-checks", item.labelled_ms, value)
    return found


def tax_audit() -> Payload:
    found = Payload(
        "colours of a risk, rulings of an audit",
        predictions={"selection": {"id": "value.return.file_no", "prediction": "value.risk"}},
        labels={
            "rulings": {
                "id": "value.file_no",
                "label": "value.ruling",
                "classes": {"adjusted": "RED", "accepted": "GREEN"},
            }
        },
    )
    ruling = {"RED": "adjusted", "GREEN": "accepted"}
    for item in story(812, classes=("GREEN", "RED"), weights=(0.6, 0.4)):
        value = {
            "return": {"file_no": f"26/{item.number + 815:05d}", "year": 2024},
            "risk": item.predicted,
            "selected_at": str(item.made_ms // 1_000),
        }
        found.add("selection", item.made_ms, value)
        value = {
            "file_no": f"26/{item.number + 815:05d}",
            "ruling": ruling[item.true],
            "cents": item.number * 7,
        }
        found.add("rulings", item.labelled_ms, value)
    return found


def drug_interactions() -> Payload:
    found = Payload(
        "names in capitals here, in small letters there",
        predictions={"INTERACTIONS": {"id": "value.CHECK_ID", "prediction": "value.SEVERITY"}},
        labels={
            "pharmacist": {
                "id": "value.check_id",
                "label": "value.severity",
                "classes": {"major": "Major", "moderate": "Moderate", "minor": "Minor"},
            }
        },
    )
    for item in story(813, classes=("Major", "Moderate", "Minor"), weights=(0.2, 0.4, 0.4)):
        value = {"CHECK_ID": item.uuid, "DRUG_A": item.user, "SEVERITY": item.predicted, "SITE": item.country}
        found.add("INTERACTIONS", item.made_ms, value)
        found.add("pharmacist", item.labelled_ms, {"check_id": item.uuid, "severity": item.true.lower()})
    return found


def yes_and_true() -> Payload:
    found = Payload(
        "Y and N here, booleans there",
        predictions={"no-show": {"id": "value.appointment", "prediction": "value.will_miss"}},
        labels={
            "arrivals": {
                "id": "value.appointment",
                "label": "value.missed",
                "classes": {"true": "Y", "false": "N"},
            }
        },
    )
    for item in story(814, classes=("N", "Y"), weights=(0.75, 0.25)):
        value = {"appointment": item.number + 3_000_000, "will_miss": item.predicted, "walk_in": False}
        found.add("no-show", item.made_ms, value)
        value = {
            "appointment": item.number + 3_000_000,
            "missed": item.true == "Y",
            "insured": item.number % 5 > 0,
        }
        found.add("arrivals", item.labelled_ms, value)
    return found


def french() -> Payload:
    found = Payload(
        "names with accents",
        predictions={"dossiers": {"id": "value.numéro", "prediction": "value.décision_prédite"}},
        labels={"clotures": {"id": "value.numéro", "label": "value.décision"}},
    )
    for item in story(815, classes=("accepté", "refusé"), weights=(0.6, 0.4)):
        value = {"numéro": f"D-{item.number}", "décision_prédite": item.predicted, "région": item.country}
        found.add("dossiers", item.made_ms, value)
        value = {"numéro": f"D-{item.number}", "décision": item.true, "clôturé_le": iso(item.labelled_ms)}
        found.add("clotures", item.labelled_ms, value)
    return found


def japanese() -> Payload:
    found = Payload(
        "names in another script",
        predictions={"shinsa": {"id": "value.受付番号", "prediction": "value.予測"}},
        labels={"kekka": {"id": "value.受付番号", "label": "value.結果"}},
    )
    for item in story(816, classes=("承認", "却下"), weights=(0.7, 0.3)):
        found.add(
            "shinsa", item.made_ms, {"受付番号": item.uuid, "予測": item.predicted, "店舗": item.country}
        )
        found.add("kekka", item.labelled_ms, {"受付番号": item.uuid, "結果": item.true, "担当": item.user})
    return found


def grades() -> Payload:
    found = Payload(
        "grades from 0 to 4 beside positions from 1 to 10",
        predictions={"ranking": {"id": "value.impression", "prediction": "value.relevance_grade"}},
        labels={"raters": {"id": "value.impression", "label": "value.grade"}},
    )
    for item in story(817, classes=("0", "1", "2", "3", "4"), weights=(0.3, 0.2, 0.2, 0.2, 0.1)):
        value = {
            "impression": item.uuid,
            "position": 1 + item.number % 10,
            "relevance_grade": int(item.predicted),
            "latency_ms": item.number % 37,
        }
        found.add("ranking", item.made_ms, value)
        value = {"impression": item.uuid, "rater": item.number % 12, "grade": int(item.true)}
        found.add("raters", item.labelled_ms, value)
    return found


def bands_beside_seconds() -> Payload:
    found = Payload(
        "a band of minutes on both sides, and the seconds it was made of",
        predictions={"eta": {"id": "value.ride", "prediction": "value.eta_band"}},
        labels={"rides": {"id": "value.ride", "label": "value.actual_band"}},
    )
    bands = ("0-5", "5-10", "10-20")
    for item in story(818, classes=bands, weights=(0.4, 0.4, 0.2)):
        seconds = {"0-5": 200, "5-10": 450, "10-20": 900}
        value = {
            "ride": item.uuid,
            "eta_seconds": seconds[item.predicted] + item.number % 90,
            "eta_band": item.predicted,
            "zone": item.country,
        }
        found.add("eta", item.made_ms, value)
        value = {
            "ride": item.uuid,
            "actual_seconds": seconds[item.true] + item.number % 80,
            "actual_band": item.true,
            "stars": item.number % 5,
        }
        found.add("rides", item.labelled_ms, value)
    return found


WORDS: tuple[Maker, ...] = (
    grid_meters,
    tax_audit,
    drug_interactions,
    yes_and_true,
    french,
    japanese,
    grades,
    bands_beside_seconds,
)
