"""Specifications: settings of the parts of the core as frozen values; each part is given its own.

Names follow the papers: `alpha` is Gama's fading factor (near 1 forgets slowly), `delta` ADWIN's confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, get_args

Dependence: TypeAlias = Literal["followed", "ignored"]
"""Whether a detector becomes stricter as losses depend on earlier ones, or assumes that they do not."""
Direction: TypeAlias = Literal["up", "down", "both"]
"""Direction of the changes of the mean that a detector looks for; "up" of a loss means worse."""
Conflicts: TypeAlias = Literal["first", "last", "both"]
"""Prediction that counts if a model predicts an id again, see `JoinSpec.conflicts`."""
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
Opponent: TypeAlias = Literal[
    "persistent", "persistent_at_prediction", "majority", "transition", "temporal_correction"
]
OPPONENTS: tuple[Opponent, ...] = get_args(Opponent)
"""Classifiers without features that a model may be judged against, as the `opponent` label names them."""
HEADLINE = "persistent"
"""Opponent whose verdicts are reported to people: the No-Change classifier."""


@dataclass(frozen=True, slots=True)
class LandmarkSpec:
    """No forgetting: all outcomes count alike (prequential)."""

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return "landmark"


@dataclass(frozen=True, slots=True)
class FadingSpec:
    """Forgetting by a fading factor `alpha` in (0, 1): S ← alpha·S + v for each value v."""

    alpha: float = 0.999

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return f"fading:{self.alpha!r}"


@dataclass(frozen=True, slots=True)
class SlidingSpec:
    """Forgetting by a sliding window: exactly the last `size` outcomes count."""

    size: int = 1000

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return f"sliding:{self.size}"


@dataclass(frozen=True, slots=True)
class AdwinSpec:
    """Forgetting by ADWIN: every measure is taken over the window that ADWIN keeps of the losses."""

    delta: float = 0.05
    min_subwindow: int = 5
    clock: int = 32
    dependence: Dependence = "followed"

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return f"adwin:{self.delta!r}" + (":ignored" if self.dependence == "ignored" else "")


@dataclass(frozen=True, slots=True)
class PageHinkleySpec:
    """Page-Hinkley test on the losses, or on the error rate faded with factor 0.999 (`input`)."""

    name: str = "page_hinkley"
    tolerance: float = 0.005
    threshold: float = 40.0
    alpha: float = 0.9999
    min_outcomes: int = 30
    dependence: Dependence = "followed"
    form: Literal["clipped", "paper"] = "clipped"
    direction: Direction = "up"
    input: Literal["loss", "error_rate"] = "loss"


@dataclass(frozen=True, slots=True)
class AdwinDriftSpec:
    """Detector that raises alarms at *new drifts* of an ADWIN window (`detectors.adwin_drift`).

    An `AdwinSpec` of equal parameters shares the window.
    """

    name: str = "adwin"
    delta: float = 0.05
    min_subwindow: int = 5
    clock: int = 32
    dependence: Dependence = "followed"
    direction: Direction = "up"


@dataclass(frozen=True, slots=True)
class DriftWeightedSpec:
    """Drift-weighted accuracy: outcomes right after a drift weigh more, `w_avg` on average."""

    w_avg: float = 3.0
    delta: float = 0.05
    """ADWIN's confidence."""
    dependence: Dependence = "followed"
    """Dependence of losses, as in ADWIN's window."""
    drift_signal: Literal["own", "reference", "labels"] = "own"
    """Drifts that count: rises of the error of this model (own) or of the model `reference` (reference), or
    changes of the labels, whatever models predict (labels)."""
    reference: str = ""
    """Name of the model whose drifts count, with `drift_signal` reference."""
    alpha: float = 1.0
    """Fading factor in (0, 1] of all sums; 1 forgets nothing."""

    @property
    def name(self) -> str:
        """Value of the `drift_weighted` label, which series have if there are several specifications."""
        whose = f":{self.reference}" if self.drift_signal == "reference" else ""
        sure = "" if self.delta == 0.05 else f":delta:{self.delta!r}"
        sure += ":ignored" if self.dependence == "ignored" else ""
        faded = "" if self.alpha == 1.0 else f":fading:{self.alpha!r}"
        return f"{self.drift_signal}{whose}:{self.w_avg!r}{sure}{faded}"


class DetectorSpec(Protocol):
    """Specification of a detector: a frozen dataclass with a name.

    Most kinds of detectors define theirs in the file of the detector (`core.estimators.detectors`).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """Value of the `detector` label."""
        ...


@dataclass(frozen=True, slots=True)
class ModelDetectors:
    """Detector parameters of some models, in place of those of `MonitorsSpec.detectors`."""

    models: str
    """Pattern (fnmatch) of the models' names."""
    detectors: tuple[DetectorSpec, ...]
    """Same number, order, names and kinds as `MonitorsSpec.detectors`; only parameters may differ."""


class RegisterSpec(Protocol):
    """Specification of a register, which keeps further state of every model: a frozen dataclass.

    Every kind of register defines its own (`core.estimators.registers`, `core.predictions`).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


UtilityKind: TypeAlias = Literal["accuracy", "balanced", "costs"]


@dataclass(frozen=True, slots=True)
class UtilitySpec:
    """Utility of a predicted class, by which a model is judged against its opponents."""

    models: str = "*"
    """Pattern (fnmatch) of the models' names."""
    kind: UtilityKind = "accuracy"
    costs: tuple[tuple[str, str, float], ...] = ()
    """(true class, predicted class, cost) for each pair, with `kind` costs."""
    other: float | None = None
    """Cost of every pair that `costs` leaves out; None if `costs` must list all pairs."""


_ACCURACY: Final = UtilitySpec()


def first_utility(utilities: Sequence[UtilitySpec], model: str) -> UtilitySpec:
    """Return the first utility whose pattern matches a model's name; accuracy if none does."""
    for each in utilities:
        if each.models == "*" or fnmatchcase(model, each.models):
            return each
    return _ACCURACY


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """Comparison of some models, the challengers, with one, the champion, on the ids that both predicted."""

    champion: str
    """Name of the model that the others are compared with."""
    challengers: tuple[str, ...]
    """Patterns (fnmatch) of the challengers' names; the champion is never one."""


COLUMN_ENTRY_BYTES: Final = 110
"""Bytes of memory per entry of the compiled join, with its share of the hash table and of commit logs."""


SIDE_VALUE_BYTES: Final = 4
"""Bytes of memory of an entry's value in one side column."""


OUTSIDE_ENTRY_BYTES: Final = 2
"""Bytes of memory per entry of the join on disk: Bloom filters and the index of blocks."""


def join_entries(join: JoinSpec) -> int:
    """Return the largest number of entries that a join can hold: the sum of its limits."""
    return join.max_pending + join.max_labels + join.max_dedup_entries


def side_bytes(join: JoinSpec) -> int:
    """Return the bytes of memory beside each entry of the compiled join.

    They are for the last class (`conflicts: both`), for the list of predictions revised since the last commit
    (`both` and `last`), and for carried numbers.
    """
    return SIDE_VALUE_BYTES * ({"first": 0, "last": 1, "both": 2}[join.conflicts] + len(join.carried))


def table_entries(memory_bytes: int, join: JoinSpec) -> int:
    """Return the number of entries that the compiled join can hold in `memory_bytes`."""
    return memory_bytes // (COLUMN_ENTRY_BYTES + side_bytes(join))


def champion_of(comparisons: Sequence[ComparisonSpec], one: str, other: str) -> str | None:
    """Return the one of two models that is the champion of the other; None if they are not compared.

    The first comparison counts whose champion is either model and one of whose patterns matches the other.
    """
    if one == other:
        return None
    for comparison in comparisons:
        if comparison.champion in {one, other}:
            challenger = other if comparison.champion == one else one
            if any(fnmatchcase(challenger, pattern) for pattern in comparison.challengers):
                return comparison.champion
    return None


ForgettingSpec: TypeAlias = LandmarkSpec | FadingSpec | SlidingSpec | AdwinSpec


@dataclass(frozen=True, slots=True)
class MonitorsSpec:
    """Estimators kept for every model, and the bounds of their table."""

    forgetting: tuple[ForgettingSpec, ...] = (LandmarkSpec(), FadingSpec(), SlidingSpec(), AdwinSpec())
    detectors: tuple[DetectorSpec, ...] = (PageHinkleySpec(), AdwinDriftSpec())
    drift_weighted: tuple[DriftWeightedSpec, ...] = (DriftWeightedSpec(),)
    max_models: int = 1_000
    max_classes: int = 1_000
    per_class: str = "fading:0.999"
    """The `forgetting` whose per-class series are exported ("" for none)."""
    all_series: bool = False
    """Whether a scrape shows every series, not the standard ones alone."""
    max_series: int = 200_000
    shadow_max_classes: int = 16
    """Largest number of classes K of models that have shadow classifiers (which keep K³ counts) and a
    confusion matrix; 0 for no model."""
    confidence_delta: float = 0.05
    """Largest probability, in (0, 1), that a bound of the accuracy is wrong, and that a false verdict on one
    model and opponent holds within `verdict_outcomes`; both if losses do not depend on earlier ones."""
    opponents: tuple[Opponent, ...] = OPPONENTS
    """Opponents that every model is judged against."""
    utilities: tuple[UtilitySpec, ...] = (UtilitySpec(),)
    """Utilities by pattern of models; the first that matches counts, or accuracy if none does."""
    folds: str = ""
    """Description of the scheme of folds, "" without one; when it changes, folds start with empty state."""
    folds_share_stream: bool = False
    """As `JoinSpec.folds_share_stream`."""
    verdict_outcomes: int = 100_000
    """Number N of outcomes within which a false verdict on one model and opponent has at most the probability
    `confidence_delta`, if losses do not depend on earlier ones; a verdict that is not confirmed for N
    outcomes becomes open again."""
    comparisons: tuple[ComparisonSpec, ...] = ()
    """Comparisons between models; the first that matches a pair counts."""
    history_days: int = 30
    """Days for which numbers of outcomes and hits per hour are kept; 0 keeps no past at all."""
    max_comparisons: int = 100
    """Most pairs of models compared: those that predicted a common id first."""
    registers: tuple[RegisterSpec, ...] = ()
    """Registers kept beside the estimators of every model, at most one of each kind."""
    detectors_by_model: tuple[ModelDetectors, ...] = ()
    """Other parameters of `detectors` for some models; the first whose pattern matches counts."""


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """Rules of the join. Durations are in milliseconds of record time.

    Of predictions that wait, labels that are kept, and dedup entries, the oldest beyond `max_pending`,
    `max_labels` and `max_dedup_entries` are evicted. Of models beyond `max_models`, each fold being one, the
    records are only counted.
    """

    horizon_ms: int = 14 * DAY_MS
    """Time that a prediction waits for its label."""
    early_horizon_ms: int = 3_600_000
    """Time that a label with a model waits for its prediction; one without is kept for `horizon_ms`."""
    dedup_horizon_ms: int = 14 * DAY_MS
    """Time for which later predictions and labels of a resolved id are recognised as such."""
    max_pending: int = 5_000_000
    max_labels: int = 5_000_000
    max_dedup_entries: int = 5_000_000
    assume: str | None = None
    """True class assumed for a prediction that expires without a label; None discards it."""
    order: Literal["resolution", "prediction_time"] = "resolution"
    """Order in which outcomes are evaluated."""
    reorder_window_ms: int = 60_000
    """Time that a resolved outcome is held for earlier predictions, with `order` prediction_time."""
    max_reordered: int = 1_000_000
    """Largest number of outcomes held; with more, the earliest are released early."""
    retain_unmatched: bool = True
    """Whether labels that met no prediction are kept for later ones."""
    max_models: int = 1_000
    folds: bool = False
    """Whether models may predict in folds."""
    folds_share_stream: bool = False
    """Whether the previous label of a fold's outcome is that of the outcomes of all folds of its model,
    instead of the fold's own (for schemes in which each fold tests only some ids)."""
    comparisons: tuple[ComparisonSpec, ...] = ()
    """Comparisons between models; outcomes of compared models on one id are paired."""
    prediction_registers: tuple[RegisterSpec, ...] = ()
    """Registers of predictions as they arrive, at most one of each kind (`core.predictions`)."""
    carried: tuple[str, ...] = ()
    """Names of the carried numbers that predictions may have (`core.records.events.CARRIED`)."""
    conflicts: Conflicts = "first"
    """Prediction that counts if a model predicts an id again, with another class, before its label arrives;
    with both, the first counts and the last class is kept, too."""
