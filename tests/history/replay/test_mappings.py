"""Replay reads as `run` does: mappings, topics, namespaces, several files, the same numbers to the bit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamwatch.cli import app
from tests.commands import CliRunner
from tests.history.recorded_log import DAY, FRAUD, START_MS, Log, daemons_document, fraud_log

FLAT: dict[str, Any] = {"kafka": {"bootstrap_servers": ["none:0"]}, "state": {"kind": "memory"}}


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """Run the command over files (name → lines) with settings; its JSON, or what it refused with."""
    monkeypatch.chdir(tmp_path)

    def run(files: dict[str, Any], *options: str, settings: dict[str, Any] | None = None, code: int = 0):
        for name, lines in files.items():
            text = lines if isinstance(lines, str) else "".join(f"{line}\n" for line in lines)
            (tmp_path / name).write_text(text)
        if settings is not None:
            (tmp_path / "streamwatch.yaml").write_text(json.dumps(settings))
        result = CliRunner().invoke(app, ["replay", *files, "--json", *options])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else result.stderr

    return run


def lines_of(log: Log) -> list[str]:
    """As kcat writes them: a batch of one partition, then one of another."""
    lines: list[str] = []
    for start in range(0, max(map(len, log.partitions.values())), 50):
        for records in log.partitions.values():
            lines += [record.of_kcat() for record in records[start : start + 50]]
    return lines


def prediction(number, shown, at_s, **rest):
    return json.dumps({"id": number, "model": "m", "prediction": shown, "timestamp": at_s * 1_000} | rest)


def label(number, true_class, at_s, **rest):
    return json.dumps({"id": number, "label": true_class, "timestamp": at_s * 1_000} | rest)


def accuracy(document, model="m"):
    return document["models"][model]["metrics"]["accuracy_ratio"]["landmark"]


def test_the_fraud_example_replayed_is_what_a_daemon_says_of_the_log_number_by_number(replayed):
    log, evaluated, wrong = fraud_log(seed=5)
    document = replayed({"log.jsonl": lines_of(log)}, settings=FRAUD)
    metrics = document["models"]["v3"]["metrics"]
    assert (metrics["outcomes_total"], metrics["errors_total"]) == (evaluated, wrong)
    assert document["stream"]["outcomes_assumed_total"] > 500
    assert document["stream"]["labels_late_total"] > 0
    for seed in (1, 2):
        daemon = daemons_document(FRAUD, log, seed)
        # The same keys: `models` whole, and of `stream` all that is of the log and not of this process.
        assert document["models"] == daemon["models"]
        assert document["stream"] == daemon["stream"]


def test_topics_in_files_of_their_own_are_merged_by_time(replayed):
    log, evaluated, wrong = fraud_log(seed=6, scored=400)
    lines = lines_of(log)
    files = {
        f"{topic}.jsonl": [line for line in lines if f'"topic": "{topic}"' in line]
        for topic in ("chargebacks", "scoring-events")
    }
    document = replayed(files, settings=FRAUD)
    metrics = document["models"]["v3"]["metrics"]
    assert (metrics["outcomes_total"], metrics["errors_total"]) == (evaluated, wrong)
    assert document["models"] == replayed({"log.jsonl": lines})["models"]


def test_lines_of_kcat_on_a_topic_that_settings_do_not_name_are_counted(replayed):
    log, evaluated, _ = fraud_log(seed=7, scored=100)
    log.add("clicks", 0, START_MS, {"id": 1})
    document = replayed({"log.jsonl": lines_of(log)}, settings=FRAUD)
    assert document["invalid"] == {"unknown_topic": 1}
    assert document["models"]["v3"]["metrics"]["outcomes_total"] == evaluated


def test_values_alone_are_distinguished_by_the_mapping_that_fits(replayed):
    topics = {
        "predictions": {"name": "p", "mapping": {"id": "value.tx", "prediction": "value.out.class"}},
        "labels": {"name": "l", "mapping": {"id": "value.tx", "label": "=bad"}},
    }
    settings = FLAT | {"topics": topics, "join": {"horizon": "1d", "on_expiry": {"assume": "ok"}}}
    rows = [
        {"tx": n, "model": "m", "out": {"class": "bad" if n % 2 else "ok"}, "timestamp": n} for n in range(10)
    ]
    rows += [{"tx": n, "timestamp": 100 + n} for n in (1, 3, 4)]  # chargebacks hold nothing but the id
    rows += [{"tx": 99, "model": "m", "out": {"class": "ok"}, "timestamp": 2 * DAY}]
    document = replayed({"rows.jsonl": map(json.dumps, rows)}, settings=settings)
    metrics = document["models"]["m"]["metrics"]
    # 4 was bad; 5, 7 and 9 were not
    assert (metrics["outcomes_total"], metrics["errors_total"]) == (10, 1 + 3)
    assert document["stream"]["outcomes_assumed_total"] == 7


@pytest.mark.slow
def test_files_are_partitions_merged_by_time_whatever_their_order_on_the_command_line(replayed):
    predictions = [prediction(n, "ab"[n % 2], 10 * n) for n in range(3_000)]
    labels = [label(n, "ab"[n % 3 == 0], 10 * n + 5) for n in range(3_000)]
    join = ("-s", "join.horizon=60s", "-s", "join.early_horizon=1s")
    one = replayed({"p.jsonl": predictions, "l.jsonl": labels}, *join)
    other = replayed({"l.jsonl": labels, "p.jsonl": predictions}, *join)
    mixed = [line for pair in zip(predictions, labels, strict=True) for line in pair]
    assert one["models"] == other["models"] == replayed({"mixed.jsonl": mixed}, *join)["models"]
    assert one["outcomes"] == 3_000
    assert one["stream"]["records_evaluated_total"] == {"labels": 3_000, "predictions": 3_000}
    assert "labels_early_total" not in {
        k for k, v in one["stream"].items() if k == "labels_early_total" and v
    }


def test_at_equal_times_a_file_of_predictions_precedes_one_of_labels(replayed):
    files = {"true_class.jsonl": [label(1, "a", 5)], "said.jsonl": [prediction(1, "a", 5)]}
    assert replayed(files)["stream"]["labels_early_total"] == 0


@pytest.mark.slow
def test_two_use_cases_that_number_alike_do_not_take_each_others_labels(replayed):
    def topics(*spaces: str) -> dict[str, Any]:
        return {
            side: [
                {"name": f"{use}-{side}", "namespace": space}
                for use, space in zip(("fraud", "churn"), spaces, strict=True)
            ]
            for side in ("predictions", "labels")
        }

    log = Log()
    for n in range(400):
        for use, right in (("fraud", "ab"[n % 2]), ("churn", "yn"[n % 3 == 0])):
            shown = {"id": n, "model": use, "prediction": right if n % 10 else "a"}
            log.add(f"{use}-predictions", 0, START_MS + n * 1_000, shown)
            log.add(
                f"{use}-labels",
                0,
                START_MS + n * 1_000 + (300 if use == "fraud" else 200),
                {"id": n, "label": right},
            )
    lines = lines_of(log)
    apart = replayed({"log.jsonl": lines}, settings=FLAT | {"topics": topics("fraud", "churn")})
    assert accuracy(apart, "churn") == 0.9
    assert accuracy(apart, "fraud") > 0.9
    settings = FLAT | {"topics": topics("fraud", "churn")}
    assert apart["models"] == daemons_document(settings, log, 3)["models"]
    together = replayed({"log.jsonl": lines}, settings=FLAT | {"topics": topics("", "")})
    assert accuracy(together, "fraud") < 0.2
    # Which is why a model that never says what labels say is reported.
    assert "classes_disjoint" not in apart["models"]["fraud"]["details"]


def test_options_name_the_model_the_columns_and_the_unit(replayed):
    text = "key,y_hat,y,at\n" + "".join(f"{n},{n % 2},{n % 3 % 2},{n}.5\n" for n in range(30))
    options = (
        "--model",
        "v3",
        "--columns",
        "id=key,prediction=y_hat,label=y,timestamp=at",
        "--timestamp-unit",
        "s",
    )
    document = replayed({"rows.csv": text}, *options)
    assert accuracy(document, "v3") == sum(n % 2 == n % 3 % 2 for n in range(30)) / 30
    metrics = document["models"]["v3"]["metrics"]
    assert metrics["last_label_timestamp_seconds"] == 29.5


def test_a_model_named_by_option_takes_labels_that_name_none(replayed):
    lines = ['{"id": 1, "prediction": "a"}', '{"id": 1, "label": "a"}']
    assert accuracy(replayed({"rows.jsonl": lines}, "--model", "v3"), "v3") == 1.0


def test_a_topic_may_be_named_for_all_lines(replayed):
    topics = {"predictions": "p", "labels": [{"name": "l", "mapping": {"label": "value.prediction"}}, "k"]}
    lines = [prediction(1, "a", 1)]
    document = replayed({"x.jsonl": lines}, "--topic", "l", settings=FLAT | {"topics": topics})
    assert document["stream"]["labels_accepted_total"] == 1
    assert document["stream"]["predictions_accepted_total"] == 0
    shown = replayed({"x.jsonl": lines}, "--topic", "nope", code=2)
    assert "--topic: expected one of p, l, k, got 'nope'" in shown


def test_a_recording_of_which_no_line_can_be_used_ends_with_1_the_reason_and_a_safe_sample(replayed):
    lines = ['{"uuid": 1, "said": "\\u001b[31m", "why": "%s"}' % ("x" * 500)] * 3
    shown = replayed({"rows.jsonl": lines}, code=1)
    assert "none of 3 lines could be used: missing_id 3" in shown
    assert "looked for in predictions: id at value.id" in shown
    (sample,) = [line for line in shown.splitlines() if line.startswith("line 1: ")]
    assert len(sample) < 100
    assert sample.isascii()
    assert sample.isprintable()
    assert "holds no lines" in replayed({"empty.jsonl": ""}, code=1)


def test_columns_that_are_no_pairs_or_no_fields_are_refused(replayed):
    row = {"rows.jsonl": [prediction(1, "a", 1)]}
    assert "expected FIELD=NAME" in replayed(row, "--columns", "prediction", code=2)
    assert "--columns: expected fields of id, model" in replayed(row, "--columns", "y=z", code=2)


def test_in_prediction_order_the_end_releases_what_is_held_and_lets_nothing_expire(replayed):
    lines = [prediction(n, "ab"[n % 2], 600 * n) for n in range(2_000)]
    lines += [label(n, "a", 600 * 2_000 + (2_000 - n)) for n in range(0, 2_000, 2)]
    order = ("-s", "join.order=prediction_time", "-s", "join.reorder_window=30d")
    options = (*order, "-s", "join.horizon=30d", "-s", "join.on_expiry={assume: b}")
    document = replayed({"rows.jsonl": lines}, *options)
    assert (document["outcomes"], document["pending"]) == (1_000, 1_000)
    assert document["stream"]["predictions_expired_total"] == 0
    assert document["stream"]["outcomes_assumed_total"] == 0
    assert document["stream"]["order_buffer_outcomes"] == 0


def test_predictions_of_folds_are_counted_and_not_taken_for_labels(replayed):
    lines = [
        prediction(1, "a", 1, fold=0),
        prediction(1, "b", 1, fold=1),
        prediction(2, "a", 1, label="a", fold=1),
    ]
    document = replayed({"rows.jsonl": [*lines, prediction(3, "a", 2)]})
    assert document["invalid"] == {"fold_without_scheme": 3}
    assert document["stream"]["records_invalid_total"] == {"fold_without_scheme": {"predictions": 3}}
    assert document["stream"]["predictions_accepted_total"] == 1


def test_classes_that_never_agree_are_reported_with_examples(replayed):
    rows = [prediction(n, n % 2, n, label=("legit", "fraud")[n % 2]) for n in range(120)]
    document = replayed({"rows.jsonl": rows})
    reported = document["models"]["m"]["details"]["classes_disjoint"]
    assert reported == {"predicted_class": ["0", "1"], "true": ["legit", "fraud"]}
    assert document["models"]["m"]["metrics"]["classes_disjoint"] == 1
