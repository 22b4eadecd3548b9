"""Opening of the committed runs at a start."""

from __future__ import annotations

import itertools

import msgspec

from streamwatch.core.join.compiled.cold.run import Run, RunManifest, read_run
from streamwatch.core.join.compiled.cold.store import (
    KINDS,
    MANIFEST,
    MOST_RUNS,
    ColdDamaged,
    KeyRange,
    RunStore,
    range_of,
    required,
    run_of,
)


def committed_runs(store: RunStore, *, clean: bool = True) -> list[Run]:
    """Read the committed runs; with `clean`, remove everything that belongs to none of them.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    keys = store.keys(*range_of(MANIFEST, 0, MOST_RUNS))
    manifests: list[RunManifest] = []
    for key, value in zip(keys, required(store, keys), strict=True):
        try:
            manifest = msgspec.msgpack.decode(value, type=RunManifest)
        except msgspec.DecodeError as error:
            raise ColdDamaged(f"the manifest of run {run_of(key)[1]} is not readable: {error}") from error
        manifests.append(manifest)
    if clean:
        _remove_uncommitted(store, manifests)
    return [read_run(store, manifest) for manifest in manifests]


def _remove_uncommitted(store: RunStore, manifests: list[RunManifest]) -> None:
    numbers = [-1, *(manifest.number for manifest in manifests), MOST_RUNS]
    uncommitted: list[KeyRange] = []
    for kind in KINDS:
        for before, after in itertools.pairwise(numbers):
            first, end = range_of(kind, before + 1, after)
            found = store.next_key(first)
            if found is not None and found < end:
                uncommitted.append((first, end))
    if uncommitted:
        store.remove(uncommitted)
