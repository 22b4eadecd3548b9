"""What an operator can choose, as frozen values. Settings build them; each part receives only its own.

Names follow METRICS: `alpha` is Gama's fading factor (near 1 forgets slowly), `delta` ADWIN's confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, get_args

Direction: TypeAlias = Literal["up", "down", "both"]
Conflicts: TypeAlias = Literal["first", "last", "both"]
DAY_MS = 86_400_000
Opponent: TypeAlias = Literal[
    "persistent", "persistent_at_prediction", "majority", "transition", "temporal_correction"
]
OPPONENTS: tuple[Opponent, ...] = get_args(Opponent)
"""Classifiers without features that a model may be judged against, as the `opponent` label names them."""
HEADLINE = "persistent"
"""The opponent whose verdicts are told to people: the No-Change classifier."""


@dataclass(frozen=True, slots=True)
class LandmarkSpec:
    """Remembers everything (prequential, no forgetting)."""

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return "landmark"


@dataclass(frozen=True, slots=True)
class FadingSpec:
    """Fading factor in (0, 1): S ← alpha·S + v."""

    alpha: float = 0.999

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return f"fading:{self.alpha!r}"


@dataclass(frozen=True, slots=True)
class SlidingSpec:
    """The last `size` outcomes, exactly."""

    size: int = 1000

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return f"sliding:{self.size}"


@dataclass(frozen=True, slots=True)
class AdwinSpec:
    """ADWIN's window over the loss; every measure is taken over that window."""

    delta: float = 0.002
    min_subwindow: int = 5
    clock: int = 32

    @property
    def name(self) -> str:
        """Value of the `forgetting` label."""
        return f"adwin:{self.delta!r}"


@dataclass(frozen=True, slots=True)
class PageHinkleySpec:
    """Page-Hinkley on the loss, or on the error rate faded with factor 0.999."""

    name: str = "page_hinkley"
    tolerance: float = 0.005
    threshold: float = 50.0
    alpha: float = 0.9999
    min_outcomes: int = 30
    form: Literal["clipped", "paper"] = "clipped"
    direction: Direction = "up"
    input: Literal["loss", "error_rate"] = "loss"


@dataclass(frozen=True, slots=True)
class AdwinDriftSpec:
    """Alarms at *new drifts* of an ADWIN window; shares the window of an equal `AdwinSpec`."""

    name: str = "adwin"
    delta: float = 0.002
    min_subwindow: int = 5
    clock: int = 32
    direction: Direction = "up"


@dataclass(frozen=True, slots=True)
class DriftWeightedSpec:
    """Drift-weighted accuracy: outcomes right after a drift weigh more, `w_avg` on average."""

    w_avg: float = 3.0
    delta: float = 0.002
    """ADWIN's confidence."""
    drift_signal: Literal["own", "reference", "labels"] = "own"
    """Whose drifts: this model's rises in error, those of the model named by `reference`, or changes in the
    labels, whatever the model."""
    reference: str = ""
    alpha: float = 1.0
    """Fading factor in (0, 1] of all sums; 1 forgets nothing."""

    @property
    def name(self) -> str:
        """Value of the `drift_weighted` label, where there are several."""
        whose = f":{self.reference}" if self.drift_signal == "reference" else ""
        sure = "" if self.delta == 0.002 else f":delta:{self.delta!r}"
        faded = "" if self.alpha == 1.0 else f":fading:{self.alpha!r}"
        return f"{self.drift_signal}{whose}:{self.w_avg!r}{sure}{faded}"


class DetectorSpec(Protocol):
    """Specification of a detector: a frozen dataclass with a name.

    Further kinds bring theirs with them (see `core.estimators.detectors`).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """Value of the `detector` label."""
        ...


@dataclass(frozen=True, slots=True)
class ModelDetectors:
    """Detectors of some models, where they are not those of all."""

    models: str
    """Pattern of the models they are of."""
    detectors: tuple[DetectorSpec, ...]
    """As many as all models have, of the same names and kinds, in the same order; parameters differ."""


class RegisterSpec(Protocol):
    """Specification of something kept beside the estimators: a frozen dataclass.

    Every kind brings its own with it (see `core.estimators.registers`).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@dataclass(frozen=True, slots=True)
class UtilitySpec:
    """Worth of an answer when a model is judged against its opponents."""

    models: str = "*"
    """Pattern of the models it is for."""
    kind: Literal["accuracy", "balanced", "costs"] = "accuracy"
    costs: tuple[tuple[str, str, float], ...] = ()
    """(true class, answer, cost), with `kind` costs."""
    other: float | None = None
    """Cost of every pair that `costs` leaves out."""


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """Models that are compared with one other, on the ids that both predicted."""

    champion: str
    """The model they are compared with."""
    challengers: tuple[str, ...]
    """Patterns of those models; the champion itself is never one of them."""


def columns_suffice(join: JoinSpec) -> bool:
    """Tell whether the compiled join does all that a join is to do.

    It holds no outcomes for the order of predictions, compares no models, knows no folds, and of predictions
    that contradict each other it takes the first.
    """
    return (
        join.order == "resolution" and not join.comparisons and not join.folds and join.conflicts == "first"
    )


COLUMN_ENTRY_BYTES: Final = 110
"""Memory of one entry of the compiled join, with its share of the table and of what commits need to know."""


OUTSIDE_ENTRY_BYTES: Final = 2
"""Memory of one of its entries on disk: filters, and where blocks begin."""


def join_entries(join: JoinSpec) -> int:
    """Entries of the compiled join at its limits."""
    return join.max_pending + join.max_labels + join.max_dedup_entries


def table_entries(memory_bytes: int) -> int:
    """Entries of the compiled join for which there is so much memory."""
    return memory_bytes // COLUMN_ENTRY_BYTES


def champion_of(comparisons: Sequence[ComparisonSpec], one: str, other: str) -> str | None:
    """Find which of two models the other is compared with; None if they are not compared.

    The first comparison that has them as champion and challenger, in either order, decides.
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
    max_series: int = 50_000
    shadow_max_classes: int = 16
    """Most classes of a model beside which shadow classifiers run (they keep K³ counts), and whose confusion
    matrix is kept; 0 for none."""
    confidence_delta: float = 0.05
    """Probability in (0, 1) with which a bound of the accuracy, or a verdict within `verdict_outcomes`, may
    be wrong."""
    opponents: tuple[Opponent, ...] = OPPONENTS
    """Whom every model is judged against."""
    utilities: tuple[UtilitySpec, ...] = (UtilitySpec(),)
    """The first whose pattern matches a model holds; without one, accuracy."""
    folds: str = ""
    """The scheme of folds in words, "" without one; under another scheme folds begin anew."""
    folds_share_stream: bool = False
    """As in `JoinSpec`: the label at a fold's prediction is then the previous label of its model's stream."""
    verdict_outcomes: int = 100_000
    """N: outcomes within which a false verdict has probability `confidence_delta`, and after which a verdict
    that nothing confirms opens."""
    comparisons: tuple[ComparisonSpec, ...] = ()
    """Which models are compared with which."""
    history_days: int = 30
    """Days over which outcomes and hits per hour are kept; 0 for none, and none of finer stretches."""
    max_comparisons: int = 100
    """Pairs of models compared at most, those that first met an id together."""
    registers: tuple[RegisterSpec, ...] = ()
    """What else is kept of every model, at most one of a kind."""
    detectors_by_model: tuple[ModelDetectors, ...] = ()
    """Other parameters of `detectors` for some models; the first whose pattern matches holds."""


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """Rules of the join (SEMANTICS §2). Durations in milliseconds of record time."""

    horizon_ms: int = 14 * DAY_MS
    early_horizon_ms: int = 3_600_000
    dedup_horizon_ms: int = 14 * DAY_MS
    max_pending: int = 5_000_000
    max_labels: int = 5_000_000
    max_dedup_entries: int = 5_000_000
    assume: str | None = None
    """Class given to a prediction that expires unlabelled; None discards it."""
    order: Literal["resolution", "prediction_time"] = "resolution"
    reorder_window_ms: int = 60_000
    max_reordered: int = 1_000_000
    retain_unmatched: bool = True
    max_models: int = 1_000
    folds: bool = False
    """Whether models may predict in folds."""
    folds_share_stream: bool = False
    """Whether the previous label of a fold's outcome is that of its model's stream, of all its folds: where a
    fold tests some ids only."""
    comparisons: tuple[ComparisonSpec, ...] = ()
    """Which models' outcomes of one id are paired."""
    prediction_registers: tuple[RegisterSpec, ...] = ()
    """What is kept of predictions as they arrive, at most one of a kind (see `core.predictions`)."""
    conflicts: Conflicts = "first"
    """Which of several predictions of one id by one model counts, where their classes differ and the label
    has not come; of both, the first counts and the last is kept beside it."""
