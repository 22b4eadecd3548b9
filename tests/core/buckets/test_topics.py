"""Topics of predictions and labels: counted in buckets until they settle, over a rebuild from a base, too."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.core.join.counters import LabelCounters, PredictionCounters
from tests.core.buckets.cluster import Cluster
from tests.core.buckets.logs import SIDES
from tests.core.buckets.test_contract import fed, label, predict
from tests.core.buckets.test_drifts import JOIN
from tests.core.buckets.test_equals_one_process import SPEC

BUCKETS = BucketsSpec(SIDES, replace(JOIN, early_horizon_ms=5_000), SPEC, 2, 1)


def test_a_bucket_made_of_its_base_counts_what_waits_by_the_topic_it_came_from():
    cluster = Cluster(BUCKETS, Random(0), 1.0)
    fed(
        cluster,
        1,
        predictions=[(0, predict("met")), (0, predict("waits"))],
        mixed=[(0, predict("mixed")), (0.5, label("nobody"))],
    )
    totals = fed(cluster, 30, labels=[(2, label("met")), (3, label("mixed")), (30, label("at the end"))])
    assert totals.counters.topic_predictions == {
        "predictions": PredictionCounters(accepted=2, joined=1),
        "mixed": PredictionCounters(accepted=1, joined=1),
    }
    assert totals.counters.topic_labels == {
        "labels": LabelCounters(accepted=3, joined=2),
        "mixed": LabelCounters(accepted=1, orphaned=1),
    }
