"""Assignment of ids to buckets by their digests, and of models by their names."""

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
    """Bucket of each id, int64, shape (n,): upper half of its digest modulo the number of buckets.

    The lower half is not used, as it determines the order in hash tables.
    """
    halves = np.frombuffer(digests(ids), ">u8").reshape(-1, 2)
    return (halves[:, 0] % np.uint64(id_buckets)).astype(np.int64)


def bucket_of_partition(partition: Partition, id_buckets: int) -> int:
    """Id bucket that counts the records of a partition, and gets its events without an id."""
    return (zlib.crc32(partition.topic.encode()) + partition.partition) % id_buckets


class ModelRoutes:
    """Model buckets of each model: the one it belongs to, and others that need its outcomes.

    Folds are in the bucket of their model. Models that are compared are all in one bucket, as a comparison
    needs both. A model that is the reference of a drift weighting (`drift_signal: reference`) is in every
    bucket.

    Parameters
    ----------
    spec
        Partitioning of the stream.
    """

    __slots__ = ("_found", "_spec")

    def __init__(self, spec: BucketsSpec) -> None:
        self._spec = spec
        self._found: dict[str, tuple[int, ...]] = {}

    def __getitem__(self, name: str) -> tuple[int, ...]:
        """Buckets of a model or fold; the one it belongs to is first."""
        try:
            return self._found[name]
        except KeyError:
            if len(self._found) > 2 * self._spec.join.max_models:
                self._found.clear()  # names of retired models
            return self._found.setdefault(name, self._route(model_of(name)))

    def _route(self, model: str) -> tuple[int, ...]:
        buckets = self._spec.model_buckets
        owner = zlib.crc32(model.encode()) % buckets
        for each in self._spec.join.comparisons:
            if model == each.champion or any(fnmatchcase(model, pattern) for pattern in each.challengers):
                owner = self.comparison_bucket
        referenced = {
            each.reference for each in self._spec.monitors.drift_weighted if each.drift_signal == "reference"
        }
        if model not in referenced:
            return (owner,)
        return (owner, *(bucket for bucket in range(buckets) if bucket != owner))

    @property
    def comparison_bucket(self) -> int:
        """Bucket of all models that are compared."""
        return 0
