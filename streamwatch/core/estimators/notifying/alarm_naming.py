"""Alarms with the names of models and detectors, built from those of the kernel and of registers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.index import utility_of
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.kind import HeadlineChange
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.join.caveats import Caveats, labels_are_in
from streamwatch.core.metrics import LABEL_DELAY_BOUNDS
from streamwatch.core.metrics.series import Histogram
from streamwatch.core.records.events import VERDICT, Alarm, ErrorChange, Judgement, Outcome, fold_of, model_of
from streamwatch.core.specs import HEADLINE

# Headlines of models in a batch: by cohorts where a register judges them so, else in the order of labels.
#
# The headline of a model is the verdict that is notified. While the register has none, it is the verdict
# against no change in the order of labels, which the kernel reports as alarms. From the outcome at which the
# register first has a headline, changes of that headline are notified instead.


class Headlines:
    """Finds changes of headlines in a batch that kernel and registers, of this `state`, have evaluated."""

    def __init__(self, state: EstimatorState) -> None:
        self._spec = state.spec
        self._table = state.table
        self._judging = state.judging

    def changes(self, batch: Batch) -> Sequence[HeadlineChange]:
        """Changes of headlines that the register found in a batch, in their order."""
        if self._judging is None:
            return ()
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
            opponents = self._table.layout.opponents
            if later:
                before = int(later[0].before)
            elif HEADLINE in opponents:
                latest = float(self._table.verdicts(rows).verdict[opponents.index(HEADLINE), 0])
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
                utility=utility_of(self._spec, cause.model).kind,
            ),
        )


NamedAlarm = tuple[int, int, int, Alarm]
"""Position of the outcome in its batch, row, index of the detector (the same for all verdicts), and alarm."""


class AlarmNaming:
    """Builds alarms with names from the row and detector numbers of the kernel and of registers.

    Detectors of registers are numbered after the kernel's detectors and the verdicts.
    """

    def __init__(self, state: EstimatorState) -> None:
        self._spec = state.spec
        self._table = state.table
        self._index = state.index
        self._raising = state.raising
        self._explaining = state.explaining
        self._headlines = Headlines(state)
        self._delays = state.delays
        """Label delays of the models, including those of the current batch."""

    def changes(self, batch: Batch, found: Sequence[AlarmRow]) -> list[ErrorChange | None]:
        """Locate each alarm's change among the predictions; to be called before registers observe the batch.

        None for alarms of verdicts, if no register finds a change, and if the error changed the other way.
        """
        changes: list[ErrorChange | None] = [None] * len(found)
        left = [k for k, f in enumerate(found) if f.detector < len(self._spec.detectors)]
        for register in self._explaining:
            if left:
                located = register.changes_at(batch, [found[k].position for k in left])
                for k, change in zip(left, located, strict=True):
                    changes[k] = change
                left = [k for k in left if changes[k] is None]
        for k, (f, change) in enumerate(zip(found, changes, strict=True)):
            if change is not None and (f.after > f.before) is not (change.after > change.before):
                changes[k] = None
        return changes

    def named(
        self, batch: Batch, found: Sequence[AlarmRow], changes: Sequence[ErrorChange | None]
    ) -> list[NamedAlarm]:
        """Build the alarms of kernel and registers with names, in the order of their outcomes."""
        detectors = self._spec.detectors
        declared: list[NamedAlarm] = []
        ordinals = self._ordinals(batch, found)
        headlines = self._headlines.changes(batch)
        for f, ordinal, change in zip(found, ordinals, changes, strict=True):
            if f.detector >= len(detectors) and not self._headlines.is_notified(batch, f, headlines):
                continue
            cause = batch.outcomes[f.position]
            alarm = Alarm(
                model=model_of(cause.model),
                detector=detectors[f.detector].name if f.detector < len(detectors) else VERDICT,
                ordinal=ordinal,
                outcome=f.outcome,
                event_ms=cause.event_ms,
                resolved_ms=cause.resolved_ms,
                statistic=f.statistic,
                threshold=f.threshold,
                before=f.before,
                after=f.after,
                n_eff=f.n_eff,
                judgement=self._judgement(f, batch),
                predictions=change,
                errors=f.errors if f.detector < len(detectors) and fold_of(cause.model) is None else None,
            )
            declared.append((f.position, f.row, min(f.detector, len(detectors)), alarm))
        if not self._raising and not headlines:
            return declared
        verdicts = [f for f in found if f.detector >= len(detectors)]
        declared += [
            (each.position, each.row, len(detectors), alarm)
            for each in headlines
            if (alarm := self._headlines.alarm_of(batch, each, verdicts)) is not None
        ]
        return sorted(declared + self._of_registers(batch), key=lambda each: each[0])

    def _of_registers(self, batch: Batch) -> list[NamedAlarm]:
        declared: list[NamedAlarm] = []
        first = len(self._spec.detectors) + 1
        for register in self._raising:
            for position, f, predicted_ms in register.raised():
                cause = batch.outcomes[position]
                counted = int(self._table.outcomes(np.array([f.row], np.int64))[0])
                alarm = Alarm(
                    model=model_of(cause.model),
                    detector=register.detectors[f.detector],
                    ordinal=f.ordinal,
                    outcome=counted - int(np.count_nonzero(batch.rows[position + 1 :] == f.row)),
                    event_ms=cause.event_ms,
                    resolved_ms=cause.resolved_ms,
                    statistic=f.statistic,
                    threshold=f.threshold,
                    before=f.before,
                    after=f.after,
                    n_eff=f.n_eff,
                    predicted_ms=predicted_ms,
                )
                declared.append((position, f.row, first + f.detector, alarm))
            first += len(register.detectors)
        return declared

    def _ordinals(self, batch: Batch, found: Sequence[AlarmRow]) -> list[int]:
        """Compute the ordinal of each alarm.

        Alarms of one detector in all folds of a model are counted together, and changes of the verdict on it
        as by the fold that has had most of them, as one that was added later has fewer.
        """
        ordinals = [f.ordinal for f in found]
        later: dict[tuple[str, int], int] = {}
        for k in reversed(range(len(found))):
            f, name = found[k], batch.outcomes[found[k].position].model
            if fold_of(name) is None:
                continue
            key = model_of(name), f.detector
            if key not in later:
                later[key] = self._alarms_of_folds(*key)
            ordinals[k] = later[key]
            later[key] -= 1
        return ordinals

    def _alarms_of_folds(self, model: str, detector: int) -> int:
        """Number of alarms of a detector, or of changes of a verdict, of a model that predicts in folds."""
        rows = self._index.rows_of_folds(model)
        opponent = detector - len(self._spec.detectors)
        if opponent < 0:
            return int(self._table.detectors(np.array(rows, np.int64)).alarms[detector].sum())
        named = self._table.layout.opponents[opponent]
        return max(self._table.verdict_changes(row, named) for row in rows)

    def _judgement(self, found: AlarmRow, batch: Batch) -> Judgement | None:
        """Verdict at the outcome of an alarm; None for the alarm of a detector."""
        opponent = found.detector - len(self._spec.detectors)
        if opponent < 0:
            return None
        named = self._table.layout.opponents[opponent]
        verdict = -1 if found.after < 0 else 1 if found.after > 0 else 0
        cause = batch.outcomes[found.position]
        age_ms = cause.event_ms - self._index.models[cause.model].first_ms
        quick = any(register.only_quick_labels(age_ms) for register in self._explaining)
        quick = quick and not self._labels_are_in(found, batch, cause, age_ms)
        utility = utility_of(self._spec, cause.model).kind
        return Judgement(named, verdict, found.since, found.since_ms, quick, utility=utility)

    def _labels_are_in(self, found: AlarmRow, batch: Batch, cause: Outcome, age_ms: int) -> bool:
        """Tell whether delays show, as of an outcome, that hardly any label takes longer.

        False for outcomes that did not come from a join, as the number of waiting predictions is unknown.
        """
        if not cause.made:
            return False
        later = (batch.rows == found.row) & ~batch.assumed
        later[: found.position + 1] = False
        counts = self._delays.counts_before(found.row, batch.delay_ms[later])
        waiting = max(0, cause.made - found.outcome)
        young = Caveats(predictions=cause.made, waiting=waiting, watched_ms=age_ms)
        return labels_are_in(young, Histogram(counts, 0.0), LABEL_DELAY_BOUNDS)
