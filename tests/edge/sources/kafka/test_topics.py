"""Topics that the cluster does not have."""

from __future__ import annotations

import pytest

from streamwatch.edge.sources.kafka.connection import TopicsMissing, require_topics
from streamwatch.edge.sources.kafka.wire import Listed


def test_a_misspelt_topic_is_reported_with_the_names_most_like_it():
    partitions = {"predictions": 2, "labels": 1, "prediction-audit": 1, "empty": 0}
    listing = {topic: Listed(dict.fromkeys(range(n), 1)) for topic, n in partitions.items()}
    require_topics(["predictions", "labels"], listing, "k:9092")
    with pytest.raises(
        TopicsMissing, match=r"topic 'predctions' does not exist \(did you mean predictions"
    ) as missing:
        require_topics(["predctions", "labels"], listing, "k:9092")
    assert missing.value.nearest["predctions"][0] == "predictions"
    with pytest.raises(TopicsMissing, match="'zzz' does not exist on k:9092"):
        require_topics(["zzz"], listing, "k:9092")
