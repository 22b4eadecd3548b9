"""Outcomes of several steps of a compiled join in one batch."""

from __future__ import annotations

import numpy as np

from streamwatch.core.pipeline.pipeline import joined_outcomes
from streamwatch.core.records.events import segments_text
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.records.scores import lists_of

TEXTS = [segments_text({"country": "1"}), segments_text({"country": "2"})]


def test_a_number_of_scores_that_stands_for_others_in_the_next_batch_is_distinguished():
    records = np.zeros(2, OUTCOME)
    records["scores"] = 1, -1
    records["label_at_prediction"] = -1
    parts = [
        OutcomeBatch(records, ["m"], ["x"], lists_of([{0: 0.5}, {0: 0.1}], [0, 1]), TEXTS),
        OutcomeBatch(records, ["m"], ["x"], lists_of([{0: 0.5}, {0: 0.2}], [0, -1]), TEXTS),
        OutcomeBatch(records[1:], ["m"], ["x"], segments=TEXTS),
        OutcomeBatch(records, ["m"], ["x"], lists_of([{0: 0.5}, {0: 0.3}], [1, 0]), TEXTS),
    ]
    expected = [outcome for part in parts for outcome in part]
    assert list(joined_outcomes(parts)) == expected
    assert [each.scores for each in expected[::2][:2]] == [{"x": 0.1}, {"x": 0.2}]
    assert [each.segments for each in expected if each.segments] == [{"country": "2"}, {"country": "1"}]
