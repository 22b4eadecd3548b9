"""Result of one step of a pipeline in columns, and the outcomes of several steps in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamwatch.core.events import Alarm, Outcome
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.outcomes import OutcomeBatch, joined_pairs
from streamwatch.core.words import joined


@dataclass(frozen=True, slots=True)
class PartialResult:
    """Result of one step of `ColumnPipeline.steps`, which covers some of the records it was given."""

    taken: int
    """Number of the given records that are joined and evaluated by now, earlier steps included."""
    outcomes: Sequence[Outcome]
    """Outcomes resolved in this step, already evaluated."""
    alarms: Sequence[Alarm]
    """Alarms that these outcomes raised, in their order."""
    retired: Sequence[tuple[int, str]]
    """(Outcomes of this step resolved before, model) for each model that retired."""
    work: Work | None = None
    """Blocking work, such as disk access, to be done before the next step or commit.

    Any thread may call it; None if there is nothing to do."""


def joined_outcomes(parts: Sequence[OutcomeBatch]) -> Sequence[Outcome]:
    """Join consecutive batches, all with the names of the last one."""
    if len(parts) <= 1:
        return parts[0] if parts else ()
    scores = {number: scores for part in parts for number, scores in part.scores.items()}
    segments = {number: values for part in parts for number, values in part.scored_segments.items()}
    records = joined([part.records for part in parts])
    last = parts[-1]
    return OutcomeBatch(
        records, last.models, last.classes, scores, last.segments, segments, joined_pairs(parts)
    )
