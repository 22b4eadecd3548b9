"""Choice of the series that a scrape shows, before any limit: those that most people need, or all.

`standard` shows what rules and dashboards read (`table.NEEDED`), and other series of common use: verdicts and
leads over the two main opponents, drifts, segments, sampled labels, comparisons, and the share and recall of
each class. It leaves out series that follow from these or serve research only: measures under other
forgettings, other opponents, and histograms of past drifts. The API always has everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from streamwatch.core.metrics.series import ClassSamples, Columns, Family
from streamwatch.core.metrics.table import JUDGED, Label, is_needed, main_forgetting

MAIN: Final[Mapping[str, Label]] = {"forgetting": lambda value, main: value == main}
STANDARD: Final[Mapping[str, Mapping[str, Label]]] = {
    "lead": JUDGED,
    "lead_lower": JUDGED,
    "lead_upper": JUDGED,
    "verdict_evidence": JUDGED,
    "cohort_lead": {},
    "cohort_lead_lower": {},
    "cohort_lead_upper": {},
    "alarms_unconfirmed": {},
    "drifts_total": {},
    "recovering": {},
    "early_hints_total": {},
    "model_records_invalid_total": {},
    "scores_unusable_total": {},
    "scores_unnormalized_total": {},
    "folds_evaluated": {},
    "fold_accuracy_ratio": MAIN,
    "fold_accuracy_deviation": MAIN,
    "fold_outcomes_total": {},
    "first_prediction_accuracy_ratio": {},
    "last_prediction_accuracy_ratio": {},
    "revision_gain": {},
    "outcomes_revised_ratio": {},
    "recall_ratio": {},
    "class_truth_ratio": {},
}
"""Series of models that are shown besides the needed ones, by name: as `table.NEEDED`."""
_WHOLE: Final = ("segment_", "sampled_", "comparison_", "prediction_clock_")
"""Prefixes of metrics of which all series are shown, as they exist only where settings ask for them."""


def is_standard(name: str, labels: Mapping[str, str], main: str) -> bool:
    """Tell whether a series of a model is shown unless all are asked for; `main` is the main forgetting."""
    if name.startswith(_WHOLE) or is_needed(name, labels, main):
        return True
    wanted = STANDARD.get(name)
    return wanted is not None and all(
        wants(labels[label], main) for label, wants in wanted.items() if label in labels
    )


class StandardSeries:
    """Chooses the standard series of reports.

    Parameters
    ----------
    forgettings
        Names of the configured forgettings; the first fading one is the main one.
    """

    def __init__(self, forgettings: Sequence[str]) -> None:
        self._main = main_forgetting(forgettings) or ""

    def chosen(self, families: Sequence[Family]) -> list[Family]:
        """Return the families with their standard series; families without models are left as they are."""
        shown: list[Family] = []
        for family in families:
            if not {"model", "challenger"} & set(family.labels):
                shown.append(family)
            elif "class" in family.labels or isinstance(family.samples, ClassSamples):
                if is_standard(family.name, {}, self._main):
                    shown.append(family)
            elif isinstance(family.samples, Columns):
                shown.append(replace(family, samples=self._of_columns(family, family.samples)))
            else:
                wanted = self._wanted(family)
                samples = [sample for sample in family.samples if wanted(sample[0])]
                shown.append(replace(family, samples=samples))
        return shown

    def _wanted(self, family: Family) -> Callable[[tuple[str, ...]], bool]:
        """Return a function that tells, from label values, whether their series is shown."""
        at = [
            (position, label)
            for position, label in enumerate(family.labels)
            if label not in {"model", "challenger", "champion"}
        ]
        decided: dict[tuple[str, ...], bool] = {}

        def wanted(values: tuple[str, ...]) -> bool:
            others = tuple(values[position] for position, _ in at)
            found = decided.get(others)
            if found is None:
                labels = {label: values[position] for position, label in at}
                found = decided[others] = is_standard(family.name, labels, self._main)
            return found

        return wanted

    def _of_columns(self, family: Family, columns: Columns) -> Columns:
        """Choose among columns as wholes, since the series of one differ by the model only."""
        wanted, shown = self._wanted(family), Columns()
        for part in columns.parts:
            if isinstance(part, list):
                shown.extend([sample for sample in part if wanted(sample[0])])
            elif any(map(wanted, islice(part.keys, 1))):
                shown.add_part(part)
        return shown
