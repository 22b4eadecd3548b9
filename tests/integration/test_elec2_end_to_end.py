"""Kafka in, /metrics out: three models on Elec2, every number equal to one recomputed from the one order."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer
from river.drift import ADWIN

from tests.core.estimators.comparisons.plain_comparison import PlainComparison
from tests.integration.conftest import Broker
from tests.integration.elec2_stories import (
    BROKEN,
    DEDUP_ENTRIES,
    HORIZON,
    MODELS,
    PARTITIONS,
    SHARES,
    Place,
    Teller,
    Told,
    in_one_order,
)
from tests.integration.naive_evaluation import Naive, measures, page_hinkley_alarms
from tests.integration.running import Samples, daemon, value
from tests.integration.topics import create_topic, fresh

HOURS_AGO_MS = 30 * 3_600_000
COUNTERS = (
    *("predictions_accepted", "predictions_resolved", "predictions_duplicate", "predictions_conflict"),
    *("predictions_expired", "predictions_evicted", "predictions_withdrawn", "outcomes_assumed"),
    *("labels_accepted", "labels_joined", "labels_early", "labels_orphaned", "labels_duplicate"),
    *("labels_corrected", "labels_late", "labels_evicted", "labels_before_start", "labels_negative_delay"),
    *("dedup_entries_evicted", "models_retired", "pairs_made", "pairs_labels_differ", "pairs_expired"),
)
ALPHA, SIZE = 0.999, 1_000
WINDOW = {"delta": 0.002, "dependence": "ignored"}


def send(servers: str, topics: Mapping[str, str], told: Sequence[Told]) -> dict[Place, Told]:
    """Write every record; what stands at each (topic, partition, offset)."""
    options = {"linger.ms": 50, "queue.buffering.max.messages": 500_000}
    producer = Producer({"bootstrap.servers": servers, **options})
    places: dict[Place, Told] = {}
    ends: dict[tuple[str, int], int] = {}
    for item, written in told:
        topic = topics[item.side]
        producer.produce(topic, item.value, item.id, item.partition, timestamp=item.record_ms)
        offset = ends.setdefault((topic, item.partition), 0)
        ends[topic, item.partition] += 1
        places[topic, item.partition, offset] = item, written
    assert producer.flush(600) == 0
    return places


def settings(servers: str, topics: Mapping[str, str]) -> dict[str, Any]:
    return {
        "kafka": {"bootstrap_servers": servers},
        "topics": {side + "s": [{"name": name, "mapping": {"id": "key"}}] for side, name in topics.items()},
        "join": {"horizon": f"{HORIZON}ms", "dedup_horizon": f"{DEDUP_ENTRIES}ms"},
        "monitors": {
            "series": "all",
            "forgetting": [
                "landmark",
                "fading",
                "sliding",
                {"adwin": WINDOW},
            ],
            # of the same window, as by default: such kernels are compiled anyway
            "detectors": ["page_hinkley", {"adwin": WINDOW}],
            "drift_weighted": [WINDOW],
            "comparisons": [
                {"champion": MODELS[0], "challengers": ["*"]},
                {"pairs": [[MODELS[1], MODELS[2]]]},
            ],
        },
    }


@pytest.mark.timeout(1_800)
async def test_metrics_equal_a_recomputation_over_all_records_in_one_order(broker: Broker) -> None:
    topics = {side: await create_topic(broker, fresh(side), PARTITIONS) for side in ("prediction", "label")}
    told = Teller(time.time_ns() // 1_000_000 - HOURS_AGO_MS).records()
    places = send(broker.bootstrap_servers, topics, told)

    async with daemon(settings(broker.bootstrap_servers, topics)) as running:
        samples = await running.until(
            lambda s: (
                value(s, "caught_up") == 1
                and shown(s) == len(told)
                and value(s, "pending_predictions", model=MODELS[0]) == 0
            )
        )
        assert (await running.get("/readyz"))[0] == 200
        order = running.order

    assert sorted(order) == sorted(places), "every record was consumed once"
    naive = Naive()
    naive.consume(places[place][1] for place in in_one_order(places))

    assert_counters_are_exact(samples, naive, topics)
    assert min(naive.counts[name] for name in ("labels_early", "labels_late", "labels_corrected")) > 0
    assert naive.counts["predictions_expired"] >= 0.9 * SHARES["never"] * len(MODELS) * 45_312
    for model in MODELS:
        assert_estimates_equal(samples, model, naive.outcomes[model])
        assert value(samples, "label_delay_seconds_count", model=model) == len(naive.delays_ms[model])
        total = sum(naive.delays_ms[model]) / 1_000
        assert value(samples, "label_delay_seconds_sum", model=model) == pytest.approx(total, rel=1e-12)
    for champion, challenger in combinations(MODELS, 2):
        assert_comparison_equals(samples, champion, challenger, naive.pairs[champion, challenger])


def assert_comparison_equals(
    samples: Samples, champion: str, challenger: str, pairs: list[tuple[str, str, str, int]]
) -> None:
    names = {"champion": champion, "challenger": challenger}
    assert value(samples, "comparison_pairs_total", **names) == len(pairs) > 40_000
    plain = PlainComparison()
    for pair in pairs:
        plain.take(*pair)
    for forgetting, expected in {
        "landmark": plain.landmark(),
        f"fading:{ALPHA}": plain.faded(ALPHA),
        f"sliding:{SIZE}": plain.sliding(SIZE),
    }.items():
        for name, wanted in expected.items():
            found = value(samples, name, forgetting=forgetting, **names)
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), (name, forgetting, names)
    lead, lower, upper = plain.verdict.interval()
    for name, wanted in {
        "verdict": plain.verdict.verdict,
        "verdict_since_pair": plain.verdict.since[0] or math.nan,
        "lead_dispersion": plain.verdict.phi,
        "lead": lead,
        "lead_lower": lower,
        "lead_upper": upper,
    }.items():
        found = value(samples, f"comparison_{name}", **names)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True), (name, names)


def shown(samples: Samples) -> int:
    """Records whose result the report tells: it may be older than the news that everything has been read."""
    results = ("predictions_accepted", "predictions_duplicate", "predictions_conflict", "labels_accepted")
    counted = {f"{name}_total" for name in (*results, "records_invalid", "null_records")}
    return sum(int(each) for (name, _), each in samples.items() if name in counted)


def assert_counters_are_exact(samples: Samples, naive: Naive, topics: Mapping[str, str]) -> None:
    found = {name: value(samples, f"{name}_total") for name in COUNTERS}
    assert found == {name: naive.counts[name] for name in COUNTERS}
    for reason in BROKEN:
        invalid = sum(
            number
            for (name, labels), number in samples.items()
            if name == "records_invalid_total" and ("reason", reason) in labels
        )
        assert invalid == naive.invalid[reason] > 0
    for reason in ("withdrawn", "evicted", "over_limit"):
        assert value(samples, "labels_unusable_total", reason=reason) == naive.unusable[reason]
    for limit in ("models", "classes"):
        assert value(samples, "records_over_limit_total", limit=limit) == 0
    assert value(samples, "null_records_total", topic=topics["prediction"]) == naive.nulls
    assert value(samples, "join_identities_violated") == 0
    assert sum(each for (name, _), each in samples.items() if name == "records_out_of_order_total") == 0
    for topic in topics.values():
        for partition in range(PARTITIONS):
            assert value(samples, "consumer_lag_records", topic=topic, partition=str(partition)) == 0


def assert_estimates_equal(samples: Samples, model: str, outcomes: list[tuple[str, str]]) -> None:
    n = len(outcomes)
    assert value(samples, "outcomes_total", model=model) == n
    assert value(samples, "errors_total", model=model) == sum(y != p for y, p in outcomes)
    alarms = value(samples, "alarms_total", model=model, detector="page_hinkley")
    assert alarms == page_hinkley_alarms(outcomes)

    # The public class throws its window away at a detection; what it keeps it in does not.
    window = ADWIN(delta=0.002, clock=32, min_window_length=5, grace_period=10, max_buckets=5)._helper
    for truth, predicted in outcomes:
        window.update(float(truth != predicted))
    width = int(window.get_width())
    assert value(samples, "adwin_window_outcomes", model=model, forgetting="adwin:0.002:ignored") == width

    ages = np.arange(n)[::-1]
    weights = {
        "landmark": np.ones(n),
        f"fading:{ALPHA}": ALPHA**ages,
        f"sliding:{SIZE}": (ages < SIZE).astype(float),
        "adwin:0.002:ignored": (ages < width).astype(float),
    }
    for forgetting, weight in weights.items():
        for name, expected in measures(outcomes, weight).items():
            metric, labels = named(name, forgetting)
            if metric is None:
                continue
            found = value(samples, metric, model=model, forgetting=forgetting, **labels)
            tolerance = 1e-7 if name == "kappa_plus" else 1e-9  # square roots amplify rounding near 0
            assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), (name, model, forgetting)


def named(name: str, forgetting: str) -> tuple[str | None, dict[str, str]]:
    """The metric and the further labels that a measure is exported as; classes under one forgetting alone."""
    kind, _, rest = name.partition(" ")
    if kind == "baseline":
        return "baseline_accuracy_ratio", {"baseline": rest}
    if kind == "recall":
        return ("recall_ratio", {"class": rest}) if forgetting == f"fading:{ALPHA}" else (None, {})
    return name, {}
