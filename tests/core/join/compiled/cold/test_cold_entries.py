"""Cold entries are a list of entries, whatever is evicted, taken, merged, committed, or lost by a crash."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.core.join.compiled.cold.cold_model import ColdMachine, CutRuns
from tests.tiers import examples


class InMemory(ColdMachine):
    """Runs in memory; a crash leaves some of what was written since the last commit."""

    def __init__(self):
        super().__init__()
        self.runs = CutRuns()
        self.kept = 0

    @rule(kept=st.integers(0, 20))
    def keep_so_much(self, kept):
        self.kept = kept

    def open_store(self):
        self.runs.cut(self.kept)
        return self.runs

    def commit_to_store(self, changes):
        self.runs.commit(changes)


def test_any_sequence_of_steps_gives_what_a_list_gives():
    run_state_machine_as_test(
        InMemory, settings=settings(max_examples=examples(2), stateful_step_count=60, deadline=None)
    )
