"""Buckets of ids, by their digests, and of models, by their names."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.events import Partition
from streamwatch.core.fold_names import model_of
from streamwatch.core.join.compiled.rows import Digests


def buckets_of_ids(ids: Sequence[str], digests: Digests, id_buckets: int) -> NDArray[np.int64]:
    """Bucket of each id, int64, shape (n,): the upper half of its digest, modulo their number.

    The lower half is what a table of entries is ordered by.
    """
    halves = np.frombuffer(digests(ids), ">u8").reshape(-1, 2)
    return (halves[:, 0] % np.uint64(id_buckets)).astype(np.int64)


def bucket_of_partition(partition: Partition, id_buckets: int) -> int:
    """Id bucket that is told of all records of a partition, and has its events without an id."""
    return (zlib.crc32(partition.topic.encode()) + partition.partition) % id_buckets


class ModelRoutes:
    """Model buckets by model: the one that owns it, and those that need its outcomes, too.

    Folds go with their model. Models that are compared are all in one bucket, as comparisons look at several.
    A model whose drifts others take as theirs (`drift_signal: reference`) is evaluated in every bucket.

    Parameters
    ----------
    spec
        How the stream is cut.
    """

    __slots__ = ("_found", "_spec")

    def __init__(self, spec: BucketsSpec) -> None:
        self._spec = spec
        self._found: dict[str, tuple[int, ...]] = {}

    def __getitem__(self, name: str) -> tuple[int, ...]:
        """Buckets of a model or fold, its owner first."""
        try:
            return self._found[name]
        except KeyError:
            if len(self._found) > 2 * self._spec.join.max_models:
                self._found.clear()  # names that are gone
            return self._found.setdefault(name, self._route(model_of(name)))

    def _route(self, model: str) -> tuple[int, ...]:
        buckets = self._spec.model_buckets
        owner = zlib.crc32(model.encode()) % buckets
        for each in self._spec.join.comparisons:
            if model == each.champion or any(fnmatchcase(model, pattern) for pattern in each.challengers):
                owner = self.compared
        referenced = {
            each.reference for each in self._spec.monitors.drift_weighted if each.drift_signal == "reference"
        }
        if model not in referenced:
            return (owner,)
        return (owner, *(bucket for bucket in range(buckets) if bucket != owner))

    @property
    def compared(self) -> int:
        """Bucket of all models that are compared."""
        return 0
