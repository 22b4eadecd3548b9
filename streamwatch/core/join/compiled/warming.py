"""Compiling the join before it is needed, or loading what was compiled before."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Label, Prediction
from streamwatch.core.join.compiled.join import CompiledJoin
from streamwatch.core.records import no_records
from streamwatch.core.specs import JoinSpec

_ENOUGH = 5_000
"""Ids for which table and entries have to grow."""


def warm_up_join() -> None:
    """Join so many predictions, and a label, that everything is called that ever will be."""
    join = _joined(_ENOUGH)
    join.take_outcomes()
    join.record_rows(no_records())


def warm_up_commits() -> None:
    """Compute what a commit writes of a small join, and go on from it."""
    join = _joined(2)
    items = sorted(join.changes(1).items())
    written = [(key, value) for key, value in items if value is not None]
    CompiledJoin(JoinSpec(), _digests).restore(join.totals(), written)


def _joined(number: int) -> CompiledJoin:
    """A join that was given so many predictions, and a label."""
    join = CompiledJoin(JoinSpec(), _digests)
    events = [Prediction(str(id_), "warm-up", "a", 0) for id_ in range(number)]
    rows = join.rows([*events, Label("0", "a", 0)])
    at = 0
    while at < len(rows):
        at, _ = join.take(rows, at)
    return join


def _digests(ids: Sequence[str]) -> bytes:
    """Digests of numbers; their lower halves are spread as those of a hash are."""
    return b"".join((int(id_) * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16, "big") for id_ in ids)
