"""Recovery as it is kept, resumed and shown."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.recovery import read_recoveries
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from tests.core.estimators.drifting import FADED, QUIET, missed, phases, with_alpha
from tests.core.estimators.kernel.streams import one_row, table_of
from tests.layouts import DEFAULT


def document_of(table: ModelTable) -> dict[str, object]:
    read = table.recovery_documents(np.array([0]))
    assert read is not None
    return read(0)


def test_a_state_from_before_there_was_a_section_starts_with_no_drifts() -> None:
    loss = phases((3_000, 0.05), (300, 0.7))
    old, new = table_of(DEFAULT), table_of(DEFAULT)
    old.fold(one_row(3_300), *missed(loss))
    sections = {n: s for n, s in old.snapshot(0).items() if not n.startswith("recovery/")}
    assert len(sections) == len(old.snapshot(0)) - 1
    new.restore(0, sections)
    assert read_recoveries(new.recoveries(FADED)).begun[0] == 0
    more = phases((3_000, 0.7), (800, 0.05), seed=2)
    new.fold(one_row(len(more)), *missed(more, 2))
    assert document_of(new) == {"forgetting": "fading:0.999"}


def test_the_document_says_what_is_under_way_and_what_was_last() -> None:
    table = table_of(with_alpha(DEFAULT, 0.99))
    loss = phases((2_000, 0.05), (300, 0.6), (1_500, 0.05), (300, 0.6))
    times = np.arange(len(loss), dtype=np.int64) * 1_000
    table.fold(one_row(len(loss)), *missed(loss), event_ms=times)
    document = document_of(table)
    now, last = document["under_way"], document["last"]
    assert isinstance(now, dict)
    assert isinstance(last, dict)
    assert 3_700 < now["since_outcome"] < 3_830
    assert 3_800 < now["alarm_timestamp_seconds"] < 3_900
    assert now["error_before_ratio"] < 0.15
    assert now["error_now_ratio"] > 0.4
    assert 0.3 < last["depth"] < 0.7
    assert 300 < last["outcomes"] < 1_000


def test_however_the_stream_is_cut_and_resumed_the_state_is_the_same_to_the_bit() -> None:
    spec = with_alpha(DEFAULT, 0.98, verdict_outcomes=500)
    loss = phases(*[(2_000, 0.05), (400, 0.7)] * 4, (1_200, 0.8))
    true_class, predicted_class = missed(loss)
    times = np.arange(len(loss), dtype=np.int64) * 1_000
    whole, cut = table_of(spec), table_of(spec)
    whole.fold(one_row(len(loss)), true_class, predicted_class, event_ms=times)
    edges = [0, *np.sort(np.random.default_rng(1).integers(0, len(loss), 40)).tolist(), len(loss)]
    under_way = 0
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        rows = one_row(stop - start)
        cut.fold(rows, true_class[part], predicted_class[part], event_ms=times[part])
        resumed = table_of(spec)
        resumed.restore(0, cut.snapshot(0))
        assert resumed.snapshot(0) == cut.snapshot(0)
        under_way += int(cut.recoveries(FADED)["since"][0] > 0)
        cut = resumed
    assert 2 < under_way < 38
    assert cut.snapshot(0) == whole.snapshot(0)
    assert whole.recoveries(FADED)["recovered"][0] >= 3
    assert whole.recoveries(FADED)["not_recovered"][0] >= 1


def test_a_trace_ends_with_what_is_reported() -> None:
    monitors = EstimatorSet(with_alpha(DEFAULT, 0.98))
    loss = phases((900, 0.05), (150, 0.7), (900, 0.05), (60, 0.9))
    outcomes = [Outcome("m", "ab"[i % 2], "ab"[(i + wrong) % 2], i, i) for i, wrong in enumerate(loss)]
    traced = monitors.trace(outcomes)
    last = dict(zip(traced.columns, traced.rows[-1], strict=True))
    reported = {f.name: dict(f.samples).get(("m",)) for f in monitors.families()}
    names = ("recovering", "recovery_depth", "recovery_outcomes")
    assert [last[name] for name in names] == [reported[name] for name in names]
    assert last["recovering"] == 1
    assert last["recovery_outcomes"] > 0


def test_a_verdict_that_names_an_outcome_which_its_fold_has_not_reached_dates_from_the_newest_sample() -> (
    None
):
    def folds(wrong_of_long: int, wrong_of_short: int):
        table = table_of(with_alpha(QUIET, 0.99), 2)
        table.join_folds([0, 1])
        begun: list[AlarmRow] = []
        for row, outcomes, wrong in (
            (0, 5_000, 0),
            (1, 2_800, 0),
            (0, 0, wrong_of_long),
            (1, 0, wrong_of_short),
        ):
            loss = np.r_[phases((outcomes, 0.4), seed=row), np.ones(wrong, np.int32)]
            begun += table.fold(one_row(len(loss), row), *missed(loss, row))
        return table, [a for a in begun if a.after < 0]

    _, (alone,) = folds(400, 0)
    table, (verdict,) = folds(alone.outcome - 5_000 - 1, 400)
    assert verdict.row == 1
    assert verdict.since > 5_000 > verdict.outcome
    begun = table.recoveries(np.array([1]))[0]
    assert verdict.outcome - 8 <= begun["since"] < verdict.outcome
    assert 0.3 < begun["before"] < 1
