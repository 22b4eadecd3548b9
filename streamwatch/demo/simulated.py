"""Seeded stream of labelled instances, and the predictions of several simulated models.

Labels are a Markov chain (temporal dependence) over unequal classes (imbalance). Each instance has three
*lasting* features and three *fickle* ones, all of unit variance. Given its class y, the means of the lasting
features are a multiple of e_y, those of the fickle ones a multiple of e_{(y + c) mod 3}, where c is the
concept: a drift changes c, and so P(x | y). Models are linear discriminants that differ in the features they
read:

* `stable-v1` reads the lasting features only: its skill is modest, and no drift affects it;
* `drifting-v2` reads all features and was fitted to concept 0: best until the first drift, then worse than
  the previous label;
* `adaptive-v3` reads all features and re-estimates the fickle means from the labels: it dips and recovers;
* any further model is `stable-vN` with noise of its own.

Instances may have a channel, which is a segment of their predictions and may be spared from drifts. Labels of
one class may take longer than those of others.

Everything is drawn in blocks from seeded generators, so that equal specs give equal streams.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Classes: TypeAlias = NDArray[np.int64]

BLOCK = 200
"""Instances drawn at a time; also how often `adaptive-v3` refits."""

_LASTING_SCALE = 2.1
_FICKLE_SCALE = 2.15
_REFIT_ALPHA = 0.75  # what one block leaves of the earlier estimate


@dataclass(frozen=True, slots=True)
class DelaySpec:
    """Distribution of the delay of a label after its prediction, in seconds of stream time.

    `lognormal` has the median `median_s` and the log-standard deviation `sigma`, `exponential` the median
    `median_s`. Longer delays than `longest_s` (None: twenty medians) are set to it. A share `never` of the
    labels is missing.
    """

    kind: Literal["lognormal", "exponential"] = "lognormal"
    median_s: float = 30.0
    sigma: float = 1.0
    longest_s: float | None = None
    never: float = 0.03

    @property
    def limit_s(self) -> float:
        """Longest delay in seconds."""
        return 20.0 * self.median_s if self.longest_s is None else self.longest_s

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw `count` delays in seconds; NaN for missing labels."""
        if self.kind == "lognormal":
            delays = self.median_s * np.exp(self.sigma * rng.standard_normal(count))
        else:
            delays = rng.exponential(self.median_s / np.log(2.0), count)
        delays = np.minimum(delays, self.limit_s)
        delays[rng.random(count) < self.never] = np.nan
        return delays


@dataclass(frozen=True, slots=True)
class Drift:
    """A change of concept, centred on instance `at` (0-based).

    The probability that an instance follows the new concept is 1/(1 + e^(−4(t − at)/width)), as in MOA's
    ConceptDriftStream; `width` 1 is abrupt.
    """

    at: int
    width: int
    concept: int

    @property
    def kind(self) -> Literal["abrupt", "gradual"]:
        """Kind by width."""
        return "abrupt" if self.width <= 1 else "gradual"

    def probability(self, positions: Floats) -> Floats:
        """Probability of the new concept at each position."""
        if self.width <= 1:
            return (positions >= self.at).astype(np.float64)
        return 1.0 / (1.0 + np.exp(np.clip(-4.0 * (positions - self.at) / self.width, -60.0, 60.0)))


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """Parameters of a stream; equal specs give equal streams.

    `persistence` ρ is the probability that a label repeats the previous one; otherwise it is drawn from
    `priors`. Every `drift_every` instances (0: never) there is a drift between concepts 0 and 1, abrupt and
    gradual (`gradual_width`) in turn. Each instance has one of `channels` (name, share), drawn independently;
    drifts do not affect the channel `spared`. `slowness` multiplies the label delays of each class.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or shares do not sum to 1.
    """

    seed: int = 1
    models: int = 3
    classes: tuple[str, str, str] = ("normal", "suspicious", "fraud")
    priors: tuple[float, float, float] = (0.7, 0.2, 0.1)
    persistence: float = 0.5
    drift_every: int = 5_000
    gradual_width: int = 1_500
    delay: DelaySpec = field(default_factory=DelaySpec)
    channels: tuple[tuple[str, float], ...] = ()
    spared: str = ""
    slowness: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if self.channels and abs(sum(share for _, share in self.channels) - 1.0) > 1e-9:
            raise ValueError(f"shares of channels must sum to 1, got {self.channels}")
        if self.spared and self.spared not in dict(self.channels):
            raise ValueError(f"spared must be one of the channels {self.channels}, got {self.spared!r}")
        if self.seed < 0:
            raise ValueError(f"a seed must be at least 0, got {self.seed}")
        if self.models < 1:
            raise ValueError(f"a stream needs at least one model, got {self.models}")
        if not 0.0 <= self.persistence < 1.0:
            raise ValueError(f"persistence must be in [0, 1), got {self.persistence}")
        if abs(sum(self.priors) - 1.0) > 1e-9 or min(self.priors) < 0.0:
            raise ValueError(f"priors must be probabilities that sum to 1, got {self.priors}")

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the models in predictions."""
        default_names = ("stable-v1", "drifting-v2", "adaptive-v3")
        return tuple(
            default_names[i] if i < len(default_names) else f"stable-v{i + 1}" for i in range(self.models)
        )

    def drifts(self, instances: int) -> list[Drift]:
        """Return the drifts whose centres are before `instances`."""
        if self.drift_every <= 0:
            return []
        return [
            self._drift(k) for k in range(1, instances // self.drift_every + 1) if self._at(k) < instances
        ]

    def concept_probability(self, positions: Floats) -> Floats:
        """Probability of concept 1 (else 0) at each position."""
        share = np.zeros(positions.shape, dtype=np.float64)
        if self.drift_every <= 0:
            return share
        # A drift's neighbours are far away, so only those within one spacing of the positions matter.
        first = max(1, int(positions[0]) // self.drift_every - 1)
        last = int(positions[-1]) // self.drift_every + 2
        share += float(first % 2 == 0)  # the concept before drift `first`
        for k in range(first, last + 1):
            drift = self._drift(k)
            share += (2 * drift.concept - 1) * drift.probability(positions)
        return np.clip(share, 0.0, 1.0)

    def _at(self, k: int) -> int:
        return k * self.drift_every

    def _drift(self, k: int) -> Drift:
        return Drift(at=self._at(k), width=1 if k % 2 else self.gradual_width, concept=k % 2)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive instances from number `first` on.

    Shapes: true_class (n,), predicted_class (models, n), scores (models, n, 3), delay_s (n,), NaN for missing
    labels. `channel` (n,) has indices of channels; None without channels.
    """

    first: int
    true_class: Classes
    predicted_class: Classes
    scores: Floats
    delay_s: Floats
    channel: Classes | None = None


def blocks(spec: StreamSpec) -> Iterator[Block]:
    """Yield the endless stream in blocks of `BLOCK` instances."""
    rng = np.random.default_rng(spec.seed)
    # A generator of its own, so that channels do not change the other draws.
    of_channels = np.random.default_rng([spec.seed, 1])
    names, shares = [name for name, _ in spec.channels], [share for _, share in spec.channels]
    slowness = np.asarray(spec.slowness, dtype=np.float64)
    priors = np.asarray(spec.priors, dtype=np.float64)
    lasting = _LASTING_SCALE * np.eye(3)
    fickle = _FICKLE_SCALE * np.eye(3)
    learned = fickle.copy()
    previous = int(rng.choice(3, p=priors))
    for first in itertools.count(0, BLOCK):
        positions = np.arange(first, first + BLOCK, dtype=np.float64)
        true_class = _chain(rng, previous, priors, spec.persistence)
        previous = int(true_class[-1])
        concept = (rng.random(BLOCK) < spec.concept_probability(positions)).astype(np.int64)
        channel = of_channels.choice(len(names), size=BLOCK, p=shares) if names else None
        if channel is not None and spec.spared:
            concept[channel == names.index(spec.spared)] = 0
        x_lasting = lasting[true_class] + rng.standard_normal((BLOCK, 3))
        x_fickle = fickle[(true_class + concept) % 3] + rng.standard_normal((BLOCK, 3))
        base = _discriminant(x_lasting, lasting) + np.log(np.maximum(priors, 1e-12))
        logits = np.stack(
            [_logits(kind, base, x_fickle, fickle, learned, rng) for kind in range(spec.models)]
        )
        delay_s = spec.delay.draw(rng, BLOCK) * slowness[true_class]
        yield Block(first, true_class, logits.argmax(axis=2), _softmax(logits), delay_s, channel)
        for k in range(3):
            if (true_class == k).any():
                mean = x_fickle[true_class == k].mean(axis=0)
                learned[k] = _REFIT_ALPHA * learned[k] + (1.0 - _REFIT_ALPHA) * mean


def _chain(rng: np.random.Generator, previous: int, priors: Floats, persistence: float) -> Classes:
    """Draw the next `BLOCK` labels of the Markov chain after `previous`."""
    fresh = rng.choice(3, size=BLOCK, p=priors)
    repeats = rng.random(BLOCK) < persistence
    chain = np.concatenate(([previous], fresh))
    sources = np.concatenate(([0], np.where(repeats, 0, np.arange(1, BLOCK + 1))))
    return chain[np.maximum.accumulate(sources)][1:]


def _discriminant(x: Floats, centres: Floats) -> Floats:
    return x @ centres.T - 0.5 * (centres * centres).sum(axis=1)


def _logits(
    index: int, base: Floats, x_fickle: Floats, fickle: Floats, learned: Floats, rng: np.random.Generator
) -> Floats:
    """Return the log-posteriors (n, 3) of model `index`, up to a constant."""
    if index == 0:
        return base
    if index == 1:
        return base + _discriminant(x_fickle, fickle)
    if index == 2:
        return base + _discriminant(x_fickle, learned)
    return base + rng.standard_normal(base.shape)


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    return powers / powers.sum(axis=2, keepdims=True)
