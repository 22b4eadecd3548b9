"""The `monitors` section: what is estimated for every model, and when it raises an alarm."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import Section

Alpha = Annotated[float, Bounded("fading factor", above=0, below=1)]
Delta = Annotated[float, Bounded("ADWIN's delta", above=0, below=1)]
MinSubwindow = Annotated[int, Bounded("ADWIN's smallest subwindow", least=5)]
Clock = Annotated[int, Bounded("ADWIN's clock", least=1, most=65_536)]
Direction = Literal["up", "down", "both"]


class FadingSection(Section):
    """Exponential forgetting per outcome; give `alpha` or `half_life`."""

    alpha: Alpha = 0.999
    """Fading factor: the weight an outcome keeps with each later one."""
    half_life: Annotated[float, Bounded("half-life in outcomes", above=0)] | None = None
    """Outcomes after which a weight has halved; instead of `alpha`."""

    @model_validator(mode="after")
    def _one_of_both(self) -> FadingSection:
        if self.half_life is not None and "alpha" in self.model_fields_set:
            raise ValueError("give alpha or half_life, not both")
        return self

    @property
    def factor(self) -> float:
        """The fading factor, however it was given: half-life h is alpha = 2^(-1/h)."""
        return self.alpha if self.half_life is None else 0.5 ** (1.0 / self.half_life)


class SlidingSection(Section):
    """The last outcomes, exactly."""

    size: Annotated[int, Bounded("sliding window", least=1, most=10_000_000)] = 1000
    """Outcomes in the window."""


class AdwinSection(Section):
    """A window that shrinks when the error rate within it changed."""

    delta: Delta = 0.002
    """Confidence: smaller forgets later."""
    min_subwindow: MinSubwindow = 5
    """Outcomes on either side of a cut, at least."""
    clock: Clock = 32
    """Outcomes between two looks for a cut."""


class FadingEntry(Section):
    """`fading: {alpha: 0.999}`."""

    fading: FadingSection


class SlidingEntry(Section):
    """`sliding: {size: 1000}`."""

    sliding: SlidingSection


class AdwinEntry(Section):
    """`adwin: {delta: 0.002}`."""

    adwin: AdwinSection


class PageHinkleySection(Section):
    """Alarms when the faded mean error rose for long enough."""

    name: str = "page_hinkley"
    """Value of the `detector` label."""
    tolerance: Annotated[float, Bounded("tolerance", least=0, below=1)] = 0.005
    """Rises below this are not added up."""
    threshold: Annotated[float, Bounded("threshold", above=0)] = 50.0
    """The sum at which it alarms."""
    alpha: Annotated[float, Bounded("fading factor", above=0, most=1)] = 0.9999
    """Fading factor of the sum; 1 never forgets."""
    min_outcomes: Annotated[int, Bounded("min_outcomes", least=1, most=1_000_000_000)] = 30
    """Outcomes before the first alarm."""
    form: Literal["clipped", "paper"] = "clipped"
    """clipped: the sum never falls below zero; paper: sum minus its minimum."""
    direction: Direction = "up"
    """Which change alarms: up (worse), down, both."""


class AdwinDriftSection(Section):
    """Alarms when ADWIN cuts its window at a change that is new."""

    name: str = "adwin"
    """Value of the `detector` label."""
    delta: Delta = 0.002
    """Confidence: smaller alarms less."""
    min_subwindow: MinSubwindow = 5
    """Outcomes on either side of a cut, at least."""
    clock: Clock = 32
    """Outcomes between two looks for a cut."""
    direction: Direction = "up"
    """Which change alarms: up (worse), down, both."""


class PageHinkleyEntry(Section):
    """`page_hinkley: {threshold: 50}`."""

    page_hinkley: PageHinkleySection


class AdwinDriftEntry(Section):
    """`adwin: {delta: 0.002}`."""

    adwin: AdwinDriftSection


def unwrapped(entry: object) -> object:
    """`adwin:` and `adwin: {}` say the same as `adwin`."""
    if isinstance(entry, dict):
        written = cast("dict[object, object]", entry)
        if len(written) == 1 and not next(iter(written.values())):
            return next(iter(written))
    return entry


def kind_of(entry: Any) -> str | None:
    """The mechanism an entry is about: itself, or its only key."""
    match entry:
        case str():
            return f"{entry} by name"
        case dict():
            return str(next(iter(entry), None)) if len(entry) == 1 else None
        case _:
            return next(iter(type(entry).model_fields), None) if isinstance(entry, Section) else None


Forgetting = Annotated[
    Annotated[Literal["landmark"], Tag("landmark by name")]
    | Annotated[Literal["fading"], Tag("fading by name")]
    | Annotated[Literal["sliding"], Tag("sliding by name")]
    | Annotated[Literal["adwin"], Tag("adwin by name")]
    | Annotated[FadingEntry, Tag("fading")]
    | Annotated[SlidingEntry, Tag("sliding")]
    | Annotated[AdwinEntry, Tag("adwin")],
    Discriminator(kind_of),
    BeforeValidator(unwrapped),
]
Detector = Annotated[
    Annotated[Literal["page_hinkley"], Tag("page_hinkley by name")]
    | Annotated[Literal["adwin"], Tag("adwin by name")]
    | Annotated[PageHinkleyEntry, Tag("page_hinkley")]
    | Annotated[AdwinDriftEntry, Tag("adwin")],
    Discriminator(kind_of),
    BeforeValidator(unwrapped),
]
FORGETTING_KINDS = ("landmark", "fading", "sliding", "adwin")
DETECTOR_KINDS = ("page_hinkley", "adwin")


class DriftWeightedSection(Section):
    """Accuracy that weighs recent outcomes by how much drift there was."""

    w_avg: Annotated[float, Bounded("mean weight", above=1, most=1_000)] = 3.0
    """Mean weight of drift."""
    delta: Delta = 0.002
    """Confidence of the ADWIN window that signals drift."""


class MonitorsSection(Section):
    """What is estimated for every model."""

    forgetting: tuple[Forgetting, ...] = Field(
        default=(
            "landmark",
            FadingEntry(fading=FadingSection()),
            SlidingEntry(sliding=SlidingSection()),
            AdwinEntry(adwin=AdwinSection()),
        ),
        min_length=1,
    )
    """Over what past every measure is taken; one series each: landmark, fading, sliding, adwin."""
    detectors: tuple[Detector, ...] = (
        PageHinkleyEntry(page_hinkley=PageHinkleySection()),
        AdwinDriftEntry(adwin=AdwinDriftSection()),
    )
    """What raises alarms: page_hinkley, adwin."""
    drift_weighted: DriftWeightedSection | None = DriftWeightedSection()
    """Drift-weighted accuracy; null switches it off."""
    per_class: str | None = None
    """The forgetting (its metric label) whose per-class series are exported; the first fading if absent."""
    max_models: Annotated[int, Bounded("max_models", least=1, most=1_000_000)] = 1_000
    """Models watched at most; records of others are counted and left out."""
    max_classes: Annotated[int, Bounded("max_classes", least=2, most=65_000)] = 1_000
    """Classes told apart per model at most; others become __other__."""
    max_series: Annotated[int, Bounded("max_series", least=100)] = 50_000
    """Time series exported at most; per-class series are left out first."""

    @field_validator("detectors")
    @classmethod
    def _names_differ(cls, detectors: tuple[Detector, ...]) -> tuple[Detector, ...]:
        names = [detector_name(entry) for entry in detectors]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two detectors are named {name!r}; give one of them another name")
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
                raise ValueError(f"a detector's name is lower-case letters, digits and _, got {name!r}")
        return detectors


def detector_name(entry: Detector) -> str:
    """Value of the `detector` label."""
    match entry:
        case PageHinkleyEntry():
            return entry.page_hinkley.name
        case AdwinDriftEntry():
            return entry.adwin.name
        case _:
            return entry
