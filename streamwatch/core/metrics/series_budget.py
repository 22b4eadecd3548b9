"""Budget of series in a scrape: a hard limit that leaves out the least needed series of each model.

Series that rules and dashboards read (`core.metrics.table.NEEDED`) are kept; only if even these exceed the
limit, whole models are left out. The other series of a model are kept in this order: those without a
forgetting or under the main one, then those under other forgettings, then values of segments and folds, the
most frequent first, then classes, the most frequent first. Every model may keep the same number of them, its
*quota*; models with fewer leave the rest to the others. So a model with 1,000 classes takes nothing from a
model with two.

The choice changes rarely, as a series that comes and goes is worse than one that is absent:

- the quota falls when the limit is exceeded, so far that `RESERVE` of the limit is free; it rises if it can
  grow by a quarter (`RISE`), if all series fit, or else once a day;
- classes and values of a segment keep their order for a day, or until the model has had twice as many
  outcomes; then one replaces another only if it is twice as frequent;
- a series that was there once counts from then on, so that one that is sometimes undefined moves no other.

Series are counted again at most once a minute if their numbers have changed, else once an hour, and at once
if the limit is exceeded or all series fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from streamwatch.core.metrics.series import ClassSamples, Family, Histogram, Sample
from streamwatch.core.metrics.table import is_needed, main_forgetting
from streamwatch.core.specs import DAY_MS, HOUR_MS, MINUTE_MS, MonitorsSpec

Part: TypeAlias = Literal["class", "segment", "forgetting", "other", "needed"]
"""Kind of series that is left out, the first to be left out first; `needed` only as a last resort."""
PARTS: Final[tuple[Part, ...]] = get_args(Part)

RESERVE: Final = 0.05
"""Share of the limit that is left free for new series whenever series are left out."""
RISE: Final = 1.25
"""Ratio by which the quota must be able to grow to be raised within a day of the last change."""
ADVANTAGE: Final = 2.0
"""Ratio by which a class must be more frequent than a shown one to replace it."""

_OTHER, _FORGETTING, _SEGMENT, _CLASS = range(4)
_WEIGHTS: Final = frozenset({"segment_outcomes_total", "fold_outcomes_total", "class_truth_ratio"})
"""Metrics whose values show how frequent a value of a segment, a fold or a class is."""

_SortKey: TypeAlias = tuple[int, int, int]
"""Sort key of a series within its model: kind, index of the forgetting or rank of the item, and metric."""
_NONE: Final[_SortKey] = (-1, 0, 0)
"""Before all series."""
_ALL: Final[_SortKey] = (4, 0, 0)
"""After all series."""
_Item: TypeAlias = tuple[str, ...]
"""Value of a segment, fold or class: the values of its labels."""


def lines_of(family: Family) -> int:
    """Count the lines of a family in an exposition; each bucket, sum and count of a histogram is one."""
    return len(family.samples) * _width(family)


def _width(family: Family) -> int:
    return len(family.bounds) + 3 if family.kind == "histogram" else 1


def _owner(family: Family) -> int | None:
    """Position of the label whose model the series count for; None for a family without models."""
    for label in ("model", "challenger"):
        if label in family.labels:
            return family.labels.index(label)
    return None


def _owner_of(family: Family) -> int:
    """As `_owner`; raises ValueError for a family without models."""
    at = _owner(family)
    if at is None:
        raise ValueError(f"{family.name}: expected a label model or challenger, got {family.labels}")
    return at


@dataclass(frozen=True, slots=True)
class Cut:
    """Families of a report that a scrape shows, and counts of the series that it leaves out."""

    families: Sequence[Family]
    lines: int
    """Lines of these families."""
    dropped: Mapping[Part, int] = field(default_factory=dict[Part, int])
    """Number of series left out, by kind; only kinds with any."""
    models: int = 0
    """Number of models with series left out."""


@dataclass(slots=True)
class _Ranking:
    """Order of a model's classes, or of its values of segments and folds."""

    ranks: dict[_Item, int]
    decided_ms: int
    outcomes: float


@dataclass(slots=True)
class _Model:
    """Series of a model that can be left out: number of lines by sort key."""

    sizes: dict[_SortKey, int] = field(default_factory=dict[_SortKey, int])
    rankings: dict[int, _Ranking] = field(default_factory=dict[int, _Ranking])
    last: _SortKey = _ALL
    """Sort key of the last series that is shown."""


class _Kept(NamedTuple):
    """Quota: number of lines of each model that are kept besides the needed ones."""

    lines: int
    name: str
    """Last model, by name, that may keep `lines`; later ones keep fewer."""


@dataclass(frozen=True, slots=True)
class _Items:
    """Labels by which the series of a family differ: a class, or a value of segments or folds."""

    kind: int
    owner: int
    at: tuple[int, ...]

    @classmethod
    def of(cls, family: Family) -> _Items | None:
        """Find these labels in a family; None if it has none."""
        for kind, names in ((_CLASS, ("class",)), (_SEGMENT, ("segment", "value")), (_SEGMENT, ("fold",))):
            if set(names) <= set(family.labels):
                return cls(kind, _owner_of(family), tuple(map(family.labels.index, names)))
        return None

    def item(self, values: tuple[str, ...]) -> _Item:
        """Pick the values of these labels."""
        return tuple(values[at] for at in self.at)


class SeriesBudget:
    """Chooses the series of a scrape; remembers its choice, so that it stays the same from scrape to scrape.

    The choice depends on the reports it was given since a start, never on the order of models or series.

    Parameters
    ----------
    max_series
        Lines of an exposition that may be shown.
    forgettings
        Names of the configured forgettings, in their order; the first fading one is the main one.
    """

    def __init__(self, max_series: int, forgettings: Sequence[str]) -> None:
        self.max_series = max_series
        self._main = main_forgetting(forgettings) or ""
        others = [name for name in forgettings if name != self._main]
        self._forgettings = {name: at for at, name in enumerate(others)}
        self._models: dict[str, _Model] = {}
        self._kept: _Kept | None = None
        self._spare = int(max_series * RESERVE)
        self._needed = self._planned = 0
        self._counted_ms = self._changed_ms = 0
        self._sizes: tuple[tuple[str, int], ...] = ()
        self._hidden: dict[str, frozenset[tuple[str, ...]]] = {}
        """Label values of series left out, by metric; new series are shown until the next count."""
        self._classes: dict[str, Sequence[str]] = {}
        """Classes that are shown, by model."""

    @classmethod
    def of(cls, monitors: MonitorsSpec) -> SeriesBudget:
        """Make the budget that settings ask for."""
        return cls(monitors.max_series, [each.name for each in monitors.forgetting])

    def cut(self, families: Sequence[Family], fixed: int, now_ms: int) -> Cut:
        """Choose the series of a report that are shown.

        Parameters
        ----------
        families
            Families of the report.
        fixed
            Lines of the exposition besides these families, which are always shown.
        now_ms
            The host's time at which the report was published, in milliseconds since the epoch.
        """
        lines = sum(map(lines_of, families))
        room = self.max_series - fixed
        if self._kept is None and lines <= room:
            return Cut(families, lines)
        sizes = tuple((family.name, len(family.samples)) for family in families)
        since_ms = now_ms - self._counted_ms
        is_due = sizes != self._sizes and not 0 <= since_ms < MINUTE_MS
        is_due |= lines <= room - self._spare or not 0 <= since_ms < HOUR_MS
        if self._kept is None or is_due:
            self._count(families, room, now_ms)
        cut = self._applied(families, lines)
        if cut.lines > room:  # because of series that appeared since the last count
            self._count(families, room, now_ms)
            cut = self._applied(families, lines)
        return cut if cut.lines <= room else _beyond_measure(cut, room)

    def _count(self, families: Sequence[Family], room: int, now_ms: int) -> None:
        """Count the series of each model, and choose those shown, in at most `room` lines."""
        self._sizes, self._counted_ms = tuple((f.name, len(f.samples)) for f in families), now_ms
        of_models = [family for family in families if _owner(family) is not None]
        room -= sum(lines_of(family) for family in families if _owner(family) is None)
        self._take_in(of_models, now_ms)
        self._planned = self._needed + sum(
            size for model in self._models.values() for key, size in model.sizes.items() if key <= model.last
        )
        self._decide(room, sum(map(lines_of, of_models)), now_ms)
        self._choose(of_models)

    def _take_in(self, families: Sequence[Family], now_ms: int) -> None:
        """Update the models, and the sizes and order of their series."""
        present = set[str]()
        for family in families:
            present |= _models_of(family)
        for gone in self._models.keys() - present:
            del self._models[gone]
        for name in present - self._models.keys():
            self._models[name] = _Model()
        self._rank(families, now_ms)
        self._needed = per_class = 0
        found: Counter[tuple[str, _SortKey]] = Counter()
        for metric, family in enumerate(families):
            if isinstance(family.samples, ClassSamples):
                per_class += 1
                continue
            at, width, key_of = _owner_of(family), _width(family), self._sort_keys(family, metric)
            for values, _ in family.samples:
                key = key_of(values)
                if key is None:
                    self._needed += width
                else:
                    found[values[at], key] += width
        for (name, key), size in found.items():
            sizes = self._models[name].sizes
            sizes[key] = max(size, sizes.get(key, 0))
        for model in self._models.values():
            if per_class and (ranking := model.rankings.get(_CLASS)) is not None:
                for rank in ranking.ranks.values():
                    key = (_CLASS, rank, 0)
                    model.sizes[key] = model.sizes.get(key, 0) + per_class

    def _rank(self, families: Sequence[Family], now_ms: int) -> None:
        """Update the order of each model's classes, and of its values of segments and folds."""
        outcomes: dict[str, float] = {}
        weights: dict[tuple[str, int], dict[_Item, float]] = {}
        for family in families:
            if family.name == "outcomes_total":
                at = _owner_of(family)
                outcomes |= {v[at]: value for v, value in family.samples if not isinstance(value, Histogram)}
            items = _Items.of(family)
            is_weight = family.name in _WEIGHTS
            if items is None or (isinstance(family.samples, ClassSamples) and not is_weight):
                continue  # its classes are those of `class_truth_ratio`
            for values, value in family.samples:
                weighed = weights.setdefault((values[items.owner], items.kind), {})
                item = items.item(values)
                weight = value if is_weight and not isinstance(value, Histogram) else 0.0
                weighed[item] = max(weight, weighed.get(item, 0.0))
        for (name, kind), weighed in weights.items():
            self._rank_model(self._models[name], kind, weighed, outcomes.get(name, 0.0), now_ms)

    def _rank_model(
        self, model: _Model, kind: int, weights: Mapping[_Item, float], outcomes: float, now_ms: int
    ) -> None:
        before = model.rankings.get(kind)
        ranks = {} if before is None else before.ranks
        is_due = (
            before is None or not 0 <= now_ms - before.decided_ms < DAY_MS or outcomes >= 2 * before.outcomes
        )
        if is_due:

            def order(item: _Item) -> tuple[float, _Item]:
                shown = item in ranks and (kind, ranks[item], 0) <= model.last != _ALL
                return -weights[item] * (ADVANTAGE if shown else 1.0), item

            ranked = sorted(weights, key=order)
            model.rankings[kind] = _Ranking({item: at for at, item in enumerate(ranked)}, now_ms, outcomes)
        elif fresh := weights.keys() - ranks.keys():
            first = max(ranks.values(), default=-1) + 1
            ranked = sorted(fresh, key=lambda item: (-weights[item], item))
            ranks |= {item: at for at, item in enumerate(ranked, first)}
        for key in [key for key in model.sizes if key[0] == kind]:
            del model.sizes[key]

    def _sort_keys(self, family: Family, metric: int) -> Callable[[tuple[str, ...]], _SortKey | None]:
        """Return a function from label values to the sort key of their series, None if it is needed."""
        at, items = _owner_of(family), _Items.of(family)
        if items is not None:

            def of_item(values: tuple[str, ...]) -> _SortKey:
                ranking = self._models[values[at]].rankings[items.kind]
                return (items.kind, ranking.ranks[items.item(values)], 0)

            return of_item
        of_forgetting = family.labels.index("forgetting") if "forgetting" in family.labels else None
        known: dict[tuple[str, ...], _SortKey | None] = {}

        def key_of(values: tuple[str, ...]) -> _SortKey | None:
            others = values[:at] + values[at + 1 :]
            if others not in known:
                known[others] = self._sort_key(family, values, of_forgetting, metric)
            return known[others]

        return key_of

    def _sort_key(
        self, family: Family, values: tuple[str, ...], of_forgetting: int | None, metric: int
    ) -> _SortKey | None:
        if is_needed(family.name, dict(zip(family.labels, values, strict=True)), self._main):
            return None
        if of_forgetting is None or values[of_forgetting] == self._main:
            return (_OTHER, 0, metric)
        return (_FORGETTING, self._forgettings.get(values[of_forgetting], len(self._forgettings)), metric)

    def _decide(self, room: int, lines: int, now_ms: int) -> None:
        """Set the quota, and the last series that each model keeps."""
        spare, before = self._spare, self._kept
        if before is None or self._planned > room:
            self._kept = self._fitting(room - spare)
        elif lines <= room - spare:
            self._kept = None
        else:
            most = self._fitting(room - spare)
            is_due = not 0 <= now_ms - self._changed_ms < DAY_MS
            if most[0] >= RISE * max(1, before[0]) or (is_due and most > before):
                self._kept = most
        if self._kept != before:
            self._changed_ms = now_ms
        self._planned = self._needed
        for name, model in self._models.items():
            last, model.last = _NONE, _ALL
            for key, end, size in _ladder(model):
                if self._kept is not None and (end, name) > self._kept:
                    model.last = last
                    break
                self._planned += size
                last = key

    def _fitting(self, room: int) -> _Kept:
        """Largest quota with which all series, the needed ones included, fit into `room` lines."""
        ends = sorted(
            (end, name, size) for name, model in self._models.items() for _, end, size in _ladder(model)
        )
        left, kept = room - self._needed, _Kept(0, "")
        for end, name, size in ends:
            left -= size
            if left < 0:
                break
            kept = _Kept(end, name)
        return kept

    def _choose(self, families: Sequence[Family]) -> None:
        """Record the series that are left out, and the classes that are shown."""
        self._hidden.clear()
        self._classes.clear()
        if self._kept is None:
            return
        for metric, family in enumerate(families):
            if isinstance(family.samples, ClassSamples):
                continue
            at, key_of = _owner_of(family), self._sort_keys(family, metric)
            hidden = frozenset(
                values
                for values, _ in family.samples
                if (key := key_of(values)) is not None and key > self._models[values[at]].last
            )
            if hidden:
                self._hidden[family.name] = hidden
        for name, model in self._models.items():
            if (ranking := model.rankings.get(_CLASS)) is not None:
                shown = (each for each, rank in ranking.ranks.items() if (_CLASS, rank, 0) <= model.last)
                self._classes[name] = [name for (name,) in shown]

    def _applied(self, families: Sequence[Family], lines: int) -> Cut:
        """Return the families without the series that are left out."""
        cut: list[Family] = []
        dropped: Counter[Part] = Counter()
        for family in families:
            if self._kept is not None and isinstance(family.samples, ClassSamples):
                every = family.samples
                samples: Sequence[Sample] = [
                    each for name, names in self._classes.items() for each in every.of_classes(name, names)
                ]
            elif (hidden := self._hidden.get(family.name)) is not None:
                samples = [sample for sample in family.samples if sample[0] not in hidden]
            else:
                cut.append(family)
                continue
            part = self._part(family)
            left_out = (len(family.samples) - len(samples)) * _width(family)
            if part == "forgetting" and left_out:
                at = family.labels.index("forgetting")
                main = sum(values[at] == self._main for values, _ in family.samples)
                main -= sum(values[at] == self._main for values, _ in samples)
                dropped["other"] += main * _width(family)
                left_out -= main * _width(family)
            dropped[part] += left_out
            cut.append(replace(family, samples=samples))
        models = sum(model.last != _ALL for model in self._models.values())
        return Cut(cut, lines - dropped.total(), {p: dropped[p] for p in PARTS if dropped[p]}, models)

    def _part(self, family: Family) -> Part:
        items = _Items.of(family)
        if items is not None:
            return "class" if items.kind == _CLASS else "segment"
        return "forgetting" if "forgetting" in family.labels else "other"


def _ladder(model: _Model) -> Iterator[tuple[_SortKey, int, int]]:
    """Yield (key, lines up to and including it, lines of it) in the order of a model's series."""
    end = 0
    for key, size in sorted(model.sizes.items()):
        end += size
        yield key, end, size


def _models_of(family: Family) -> set[str]:
    """Names of the models that a family has series of."""
    if isinstance(family.samples, ClassSamples):
        return set(family.samples.models)
    at = _owner_of(family)
    return {values[at] for values, _ in family.samples}


def _beyond_measure(cut: Cut, room: int) -> Cut:
    """Leave out whole models, the last by name first, as even the needed series do not fit.

    If the families without models do not fit either, leave these out, the largest first.
    """
    of_none = within([family for family in cut.families if _owner(family) is None], room)
    left = room - sum(map(lines_of, of_none))
    sizes: Counter[str] = Counter()
    for family in cut.families:
        at = _owner(family)
        if at is not None:
            for values, _ in family.samples:
                sizes[values[at]] += _width(family)
    shown = set[str]()
    for name in sorted(sizes):
        left -= sizes[name]
        if left < 0:
            break
        shown.add(name)
    kept = {family.name for family in of_none}
    families: list[Family] = []
    for family in cut.families:
        at = _owner(family)
        if at is not None:
            samples = [sample for sample in family.samples if sample[0][at] in shown]
            families.append(replace(family, samples=samples))
        elif family.name in kept:
            families.append(family)
    lines = sum(map(lines_of, families))
    dropped: dict[Part, int] = {**cut.dropped, "needed": cut.lines - lines}
    return Cut(families, lines, dropped, len(sizes.keys() - shown) or cut.models)


def within(families: Sequence[Family], room: int) -> Sequence[Family]:
    """Leave out whole families, the largest first, until the rest fits into `room` lines."""
    left = sum(map(lines_of, families)) - room
    gone = set[str]()
    for family in sorted(families, key=lambda each: (-lines_of(each), each.name)):
        if left <= 0:
            break
        left -= lines_of(family)
        gone.add(family.name)
    return [family for family in families if family.name not in gone]
