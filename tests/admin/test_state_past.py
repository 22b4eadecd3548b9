"""The past as a state directory has it is that of the outcomes it was written from."""

from __future__ import annotations

from collections import Counter

from streamwatch.admin.state_contents import state_pasts
from streamwatch.core.estimators.past import merged
from tests.core.join.join_stream import label, predict
from tests.edge.stores.rocksdb.joins import Life

STEP_MS = 7_000


def test_snapshots_and_journal_give_the_counts_of_every_outcome(tmp_path) -> None:
    """The journal holds 50 outcomes: of some models the snapshot is the later one, of others the journal."""
    life = Life(tmp_path / "state")
    outcomes, hits = Counter[tuple[str, int, int]](), Counter[tuple[str, int, int]]()
    for n in range(300):
        model = "busy" if n % 10 else "rare"
        answer = "x" if n % 4 else "y"
        at_ms = n * STEP_MS
        life.feed(predict(f"a{n}", answer, at_ms, model))
        life.feed(label(f"a{n}", "x", at_ms, model))
        if n % 20 == 19:
            life.commit()
        for seconds in (60, 600, 3_600):
            slot = (model, seconds, at_ms // 1_000 // seconds * seconds)
            outcomes[slot] += 1
            hits[slot] += answer == "x"
    life.store.close()
    pasts = state_pasts(tmp_path / "state")
    found = {
        (model, int(each["seconds"]), int(each["start_s"])): (int(each["outcomes"]), int(each["right"]))
        for model, views in pasts.views.items()
        for each in merged(views, pasts.days)
    }
    assert pasts.days == 30
    assert found == {slot: (outcomes[slot], hits[slot]) for slot in outcomes}


def test_a_state_without_a_commit_has_no_past(tmp_path) -> None:
    Life(tmp_path / "state").store.close()
    assert state_pasts(tmp_path / "state").views == {}
