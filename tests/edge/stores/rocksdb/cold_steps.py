"""Steps of cold entries whose runs are in RocksDB."""

from __future__ import annotations

from streamwatch.core.join.cold.store import MemoryRuns
from streamwatch.edge.stores.rocksdb.database import MEBIBYTE, Database
from streamwatch.edge.stores.rocksdb.store import RocksRuns
from tests.core.join.cold.cold_model import ColdSteps

COMMITS = b"commits"


def opened(directory):
    """A directory with room for cold runs; small buffers, so that files are written, too."""
    return Database(directory, 4 * MEBIBYTE, MEBIBYTE)


class OnDisk(ColdSteps):
    """Runs in a directory, and in it the number of the last commit."""

    def __init__(self, chance, directory):
        self.directory = directory
        self.database = None
        self.commits = 0
        super().__init__(chance)

    def open_store(self):
        if self.database is not None:
            self.database.close()
            self.survive()
        self.database = opened(self.directory)
        return RocksRuns(self.database)

    def survive(self):
        """Do to the files what a crash does to them."""

    def commit_to_store(self, changes):
        self.commits += 1
        with self.database.batch() as batch:
            RocksRuns(self.database).write_changes(changes, batch)
            self.database.into("meta", batch)
            batch[COMMITS] = self.commits.to_bytes(8, "big")
        self.database.flush()


class Undisturbed(ColdSteps):
    """The same steps without a disk, and what lived at each commit."""

    def __init__(self, chance):
        self.runs = MemoryRuns()
        super().__init__(chance)
        self.at_commit = [self.model]

    def open_store(self):
        return self.runs

    def commit_to_store(self, changes):
        self.runs.commit(changes)
        self.at_commit.append(self.model)

    def until(self, commit):
        """What lived at a commit."""
        while len(self.at_commit) <= commit:
            self.walk(1, checked=False)
        return self.at_commit[commit]
