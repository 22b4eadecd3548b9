"""What commits of a join wrote, kept in memory."""

from __future__ import annotations


class ColumnShelf:
    """Everything that commits wrote, and nothing that was not committed."""

    def __init__(self):
        self.snapshot, self.values, self.commits = None, {}, 0

    def commit(self, pipeline):
        self.commits += 1
        for key, value in pipeline.join.changes(self.commits).items():
            if value is None and key[:1] in b"mcg":
                self.values.pop(key, None)  # a name may be given and released between two commits
            elif value is None:
                del self.values[key]  # only what is there is removed
            else:
                self.values[key] = value
        self.snapshot = pipeline.snapshot()

    def items(self):
        return sorted(self.values.items())

    def restored(self, pipeline):
        if self.snapshot is not None:
            pipeline.restore(self.snapshot, self.items())
        return pipeline
