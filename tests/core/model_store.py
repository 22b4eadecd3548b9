"""A store as plain dictionaries: what commits leave, and a start finds."""

from __future__ import annotations

from streamwatch.core.ports import CommitBatch, RecoveredState


class ModelStore:
    """Applies commits; `saved` is what a start would find after the last one."""

    def __init__(self):
        self.commits = 0
        self.sections, self.models, self.journal, self.outbox = {}, {}, {}, {}
        self.columns = {}

    def commit(self, changes: CommitBatch):
        self.commits += 1
        self.sections |= changes.sections
        for kept, new in (
            (self.models, changes.models),
            (self.outbox, changes.outbox),
            (self.columns, changes.columns),
        ):
            for key, value in new.items():
                if value is None:
                    kept.pop(key, None)
                else:
                    kept[key] = value
        if changes.journal:
            self.journal[self.commits] = changes.journal
        self.journal = {n: entry for n, entry in self.journal.items() if n >= changes.journal_floor}

    def saved(self) -> RecoveredState:
        return RecoveredState(
            self.commits,
            dict(self.sections),
            dict(self.models),
            sorted(self.journal.items()),
            dict(self.outbox),
            sorted(self.columns.items()),
        )
