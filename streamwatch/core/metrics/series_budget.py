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
from itertools import compress
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from streamwatch.core.metrics.series import (
    ClassSamples,
    Column,
    Columns,
    Family,
    Histogram,
    HistogramColumn,
    ModelKeys,
    Sample,
)
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
_Others: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Label values of a series before and after that of its model."""


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
        self._hidden: dict[str, dict[_Others, set[str]]] = {}
        """Models whose series are left out, by metric and other labels; new series are shown until the next
        count."""
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
        self._measure(families)
        if per_class := sum(isinstance(each.samples, ClassSamples) for each in families):
            for model in self._models.values():
                if (ranking := model.rankings.get(_CLASS)) is not None:
                    for rank in ranking.ranks.values():
                        key = (_CLASS, rank, 0)
                        model.sizes[key] = model.sizes.get(key, 0) + per_class

    def _measure(self, families: Sequence[Family]) -> None:
        """Count the needed lines, and the lines of each model by sort key, without those of classes."""
        self._needed = 0
        found: dict[_SortKey, Counter[str]] = {}
        widths: dict[_SortKey, int] = {}
        for metric, family in enumerate(families):
            if isinstance(family.samples, ClassSamples):
                continue
            width, has_items = _width(family), _Items.of(family) is not None
            for key, _, names in self._keyed(family, metric):
                if key is None:
                    self._needed += width * len(names)
                    continue
                counts = found.setdefault(key, Counter())
                if has_items:  # several metrics have series of the same item
                    widths[key] = 1
                    for name in names:
                        counts[name] += width
                else:
                    widths[key] = width
                    counts.update(names)
        for key, counts in found.items():
            for name, number in counts.items():
                sizes = self._models[name].sizes
                sizes[key] = max(number * widths[key], sizes.get(key, 0))

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

    def _keyed(self, family: Family, metric: int) -> Iterator[tuple[_SortKey | None, _Others, Sequence[str]]]:
        """Yield sort keys, None of needed series; label values besides the model's; and models with both."""
        key_of, has_items = self._sort_keys(family, metric), _Items.of(family) is not None
        for (before, after), names in _columns_of(family):
            if has_items:
                for name in names:
                    yield key_of((*before, name, *after)), (before, after), (name,)
            elif names:
                yield key_of((*before, names[0], *after)), (before, after), names

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
        last = {name: model.last for name, model in self._models.items()}
        for metric, family in enumerate(families):
            if isinstance(family.samples, ClassSamples):
                continue
            hidden: dict[_Others, set[str]] = {}
            for key, others, names in self._keyed(family, metric):
                if key is not None and (gone := [name for name in names if key > last[name]]):
                    hidden.setdefault(others, set()).update(gone)
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
                samples = _without(family, hidden)
            else:
                cut.append(family)
                continue
            part = self._part(family)
            left_out = (len(family.samples) - len(samples)) * _width(family)
            if part == "forgetting" and left_out:
                main = self._under_main(family) - self._under_main(replace(family, samples=samples))
                dropped["other"] += main * _width(family)
                left_out -= main * _width(family)
            dropped[part] += left_out
            cut.append(replace(family, samples=samples))
        models = sum(model.last != _ALL for model in self._models.values())
        return Cut(cut, lines - dropped.total(), {p: dropped[p] for p in PARTS if dropped[p]}, models)

    def _under_main(self, family: Family) -> int:
        """Count the series under the main forgetting."""
        at = family.labels.index("forgetting")
        return sum(
            len(names)
            for (before, after), names in _columns_of(family)
            if (*before, "", *after)[at] == self._main
        )

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
    return set[str]().union(*(names for _, names in _columns_of(family)))


def _parts_of(family: Family) -> Sequence[Column | HistogramColumn | Sequence[Sample]]:
    """Columns of a family in which each model has a series, and sequences of further samples."""
    samples, at = family.samples, _owner_of(family)
    if isinstance(samples, Columns) and all(
        isinstance(part, list) or len(part.keys.before) == at for part in samples.parts
    ):
        return samples.parts
    return [samples]


def _columns_of(family: Family) -> Iterator[tuple[_Others, Sequence[str]]]:
    """Yield label values other than that of the model, and the models that have a series with them.

    The same label values may come several times, with other models.
    """
    at, single = _owner_of(family), dict[_Others, list[str]]()
    for part in _parts_of(family):
        if isinstance(part, Column):
            defined, names = ~np.isnan(part.values), part.keys.models
            others = part.keys.before, part.keys.after
            yield others, names if defined.all() else list(compress(names, defined.tolist()))
        elif isinstance(part, HistogramColumn):
            yield (part.keys.before, part.keys.after), part.keys.models
        else:
            for values, _ in part:
                single.setdefault((values[:at], values[at + 1 :]), []).append(values[at])
    yield from single.items()


def _without(family: Family, hidden: Mapping[_Others, set[str]]) -> Sequence[Sample]:
    """Return the samples of a family without those of some models, by their other labels.

    Columns stay columns, which are compared and rendered in a fraction of the time.
    """
    at, kept, none = _owner_of(family), Columns(), set[str]()
    for part in _parts_of(family):
        if isinstance(part, Column | HistogramColumn):
            keys, names = part.keys, part.keys.models
            gone = hidden.get((keys.before, keys.after), none)
            if gone.isdisjoint(names):
                kept.add_part(part)
            elif not gone.issuperset(names):
                stays = [name not in gone for name in names]
                own = ModelKeys(list(compress(names, stays)), keys.before, keys.after)
                chosen = np.array(stays)
                if isinstance(part, Column):
                    kept.add_part(Column(own, part.values[chosen]))
                else:
                    kept.add_part(HistogramColumn(own, part.counts[chosen], part.totals[chosen]))
        else:
            kept.extend(
                [
                    sample
                    for sample in part
                    if sample[0][at] not in hidden.get((sample[0][:at], sample[0][at + 1 :]), none)
                ]
            )
    return kept


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
