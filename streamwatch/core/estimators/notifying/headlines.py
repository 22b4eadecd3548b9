"""Headlines of models in a batch: by cohorts where a register judges them so, else in the order of labels.

The headline of a model is the verdict that is notified. While the register has none, it is the verdict
against no change in the order of labels, which the kernel reports as alarms. From the outcome at which the
register first has a headline, changes of that headline are notified instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.alarms import HeadlineChange, JudgesModels
from streamwatch.core.records.events import VERDICT, Alarm, Judgement, model_of
from streamwatch.core.specs import HEADLINE, UtilitySpec, first_utility

NO_CHANGES: Sequence[HeadlineChange] = ()


class Headlines:
    """Finds changes of headlines in a batch that kernel and registers have evaluated.

    Parameters
    ----------
    table
        State of the models' estimators.
    utilities
        Utilities by which models are judged.
    judging
        Register whose verdicts are headlines; None if there is none.
    """

    def __init__(
        self, table: ModelTable, utilities: tuple[UtilitySpec, ...], judging: JudgesModels | None
    ) -> None:
        self._table = table
        self._utilities = utilities
        self._judging = judging

    def changes(self, batch: Batch) -> Sequence[HeadlineChange]:
        """Changes of headlines that the register found in a batch, in their order."""
        if self._judging is None:
            return NO_CHANGES
        found = self._judging.headline_changes()
        return [each for each in found if self._judging.gives_headline(batch.outcomes[each.position].model)]

    def is_notified(self, batch: Batch, verdict: AlarmRow, changes: Sequence[HeadlineChange]) -> bool:
        """Tell whether a change of the verdict in the order of labels is a change of the headline."""
        judging = self._judging
        if judging is None or not judging.gives_headline(batch.outcomes[verdict.position].model):
            return True
        if judging.headline_verdicts([verdict.row])[0] is None:
            return True
        begun = [each.position for each in changes if each.row == verdict.row and each.is_first]
        return bool(begun) and verdict.position < begun[0]

    def alarm_of(self, batch: Batch, change: HeadlineChange, found: Sequence[AlarmRow]) -> Alarm | None:
        """Build the alarm of a change; None if it is the register's first headline, open like that by labels.

        Parameters
        ----------
        batch, change
            Evaluated outcomes, and a change of a headline among them.
        found
            Changes of verdicts in the order of labels in the batch.
        """
        rows = np.array([change.row], np.int64)
        later = [each for each in found if each.row == change.row and each.position > change.position]
        before = change.before
        if change.is_first:
            no_change = (
                self._table.layout.opponents.index(HEADLINE)
                if HEADLINE in self._table.layout.opponents
                else None
            )
            if later:
                before = int(later[0].before)
            elif no_change is not None:
                latest = float(self._table.verdicts(rows).verdict[no_change, 0])
                before = int(latest) if latest == latest else 0  # noqa: PLR0124  # NaN before its first answer
            if before == change.verdict == 0:
                return None
        cause = batch.outcomes[change.position]
        counted = int(self._table.outcomes(rows)[0])
        outcome = counted - int(np.count_nonzero(batch.rows[change.position + 1 :] == change.row))
        return Alarm(
            model=model_of(cause.model),
            detector=VERDICT,
            ordinal=change.number + self._table.verdict_changes(change.row, HEADLINE) - len(later),
            outcome=outcome,
            event_ms=cause.event_ms,
            resolved_ms=cause.resolved_ms,
            statistic=change.evidence,
            threshold=change.threshold,
            before=float(before),
            after=float(change.verdict),
            n_eff=change.predictions,
            judgement=Judgement(
                change.opponent,
                -1 if change.verdict < 0 else 1 if change.verdict > 0 else 0,
                max(1, outcome - change.outcomes),
                change.since_ms,
                basis="cohorts",
                status=change.status,
                earliest_ms=change.earliest_ms,
                latest_ms=change.latest_ms,
                utility=first_utility(self._utilities, model_of(cause.model)).kind,
            ),
        )
