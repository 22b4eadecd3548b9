"""Changes of tables, by Debezium."""

from __future__ import annotations

from tests.inspection.story import HOUR, Maker, Payload, story


def debezium() -> Payload:
    found = Payload(
        "labels by Debezium, with many columns; times in microseconds",
        predictions={
            "risk.scored": {
                "id": "value.claim_id",
                "prediction": "value.risk_class",
                "timestamp": "value.at_us",
                "timestamp_unit": "us",
            }
        },
        labels={"db.claims": {"envelope": "debezium", "id": "value.id", "label": "value.final_class"}},
    )
    for item in story(13, classes=("low", "mid", "high"), weights=(0.5, 0.3, 0.2)):
        value = {
            "claim_id": 900_000 + item.number,
            "risk_class": item.predicted,
            "at_us": item.made_ms * 1_000,
            "region": item.country,
        }
        found.add("risk.scored", item.made_ms + 3, value)
        after = {
            "id": 900_000 + item.number,
            "state": ["open", "closed"][item.number % 2],
            "region": item.country,
            "final_class": item.true,
            "handler": item.number % 11,
            "amount": item.amount,
            "version": 1,
            "updated_at": item.labelled_ms,
        }
        source = {
            "connector": "postgresql",
            "table": "claims",
            "ts_ms": item.labelled_ms,
            "lsn": item.number * 91,
        }
        payload = {"before": None, "after": after, "op": "u", "ts_ms": item.labelled_ms + 2, "source": source}
        found.add("db.claims", item.labelled_ms + 4, {"schema": None, "payload": payload})
    return found


def debezium_both() -> Payload:
    found = Payload(
        "both tables by Debezium without a schema, decimals as text",
        predictions={
            "pg.public.decision": {
                "envelope": "debezium",
                "id": "value.application_id",
                "prediction": "value.decision",
            }
        },
        labels={
            "pg.public.loan": {
                "envelope": "debezium",
                "id": "value.application_id",
                "label": "value.repaid",
                "optional": True,
            }
        },
    )
    source = {"connector": "postgresql", "db": "bank", "schema": "public", "lsn": 1}
    for item in story(411, classes=("true", "false"), weights=(0.7, 0.3), delay_ms=20 * HOUR):
        after = {
            "decision_id": item.uuid,
            "application_id": item.number + 33_000,
            "decision": item.predicted == "true",
            "limit_eur": str(item.amount),
        }
        change = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": item.made_ms + 4}
        found.add("pg.public.decision", item.made_ms + 9, change)
        after = {"application_id": item.number + 33_000, "paid": "0.00", "repaid": None}
        change = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": item.made_ms + 50}
        found.add("pg.public.loan", item.made_ms + 60, change)
        after = after | {"paid": str(item.amount), "repaid": item.true == "true"}
        change = {"before": None, "after": after, "source": source, "op": "u", "ts_ms": item.labelled_ms}
        found.add("pg.public.loan", item.labelled_ms + 9, change)
    return found


def one_table() -> Payload:
    found = Payload(
        "a table of decisions whose rows are updated with the truth, by Debezium",
        predictions={
            "db.decisions": {"envelope": "debezium", "id": "value.id", "prediction": "value.decision"}
        },
        labels={"db.decisions": {"envelope": "debezium", "id": "value.id", "label": "value.actual"}},
    )
    source = {"connector": "mysql", "db": "shop", "pos": 4}
    for item in story(421):
        after = {"id": item.number + 7_000, "decision": item.predicted, "actual": None}
        change = {"before": None, "after": after, "op": "c", "ts_ms": item.made_ms, "source": source}
        found.add("db.decisions", item.made_ms, change)
        after = after | {"actual": item.true}
        change = {"before": None, "after": after, "op": "u", "ts_ms": item.labelled_ms, "source": source}
        found.add("db.decisions", item.labelled_ms, change)
    return found


TABLES: tuple[Maker, ...] = (debezium, debezium_both, one_table)
