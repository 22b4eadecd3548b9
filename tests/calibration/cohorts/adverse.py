"""Laws of delays, labels and clocks that were looked for to break verdicts by cohorts."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np

from tests.calibration.cohorts.worlds import (
    Bools,
    Clock,
    Delays,
    Drawn,
    Floats,
    Ints,
    OfTime,
    Predictions,
    by_error,
    by_hit,
    exponential,
    two_means,
)

NEVER = 1e6
"""A delay beyond every horizon."""


def mostly_quick(slow_hits: float, slow_errors: float, slow: float = 45.0) -> Delays:
    """Labels come after a day on average, but of hits and of errors these shares come after so many days."""

    def delays(rng: np.random.Generator, p: Predictions, _: float) -> Floats:
        late = rng.random(p.time.size) < np.where(p.hit, slow_hits, slow_errors)
        quick = exponential(rng, np.full(p.time.size, 1.0), 20.0)
        return np.where(late, slow + 5.0 * rng.random(p.time.size), quick)

    return delays


def beyond_the_horizon(rng: np.random.Generator, p: Predictions, _: float) -> Floats:
    """Exponential without a limit: hits after 15, errors after 3 on average."""
    return rng.exponential(np.where(p.hit, 15.0, 3.0))


def without_class(never: int) -> Delays:
    """As `by_hit`, but one class is never labelled."""
    return lambda rng, p, h: np.where(p.label == never, NEVER, by_hit()(rng, p, h))


def first_class_soon(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """Labels of class 0 come after 3 days on average, those of others after 30."""
    return exponential(rng, np.where(p.label == 0, 3.0, 30.0), h)


def first_two_soon(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """Labels of classes 0 and 1 come after 3 days on average, those of others after 30."""
    return exponential(rng, np.where(p.label < 2, 3.0, 30.0), h)


def last_class_late(slow: float, quick: float, last: int) -> Delays:
    """Labels of one class come after `slow` on average, those of others after `quick`."""
    return lambda rng, p, h: exponential(rng, np.where(p.label == last, slow, quick), h)


def second_class_late(late: float, quick: float, within: float) -> Delays:
    """Labels come after `quick` on average, and within a time, those of class 1 so much later."""

    def delays(rng: np.random.Generator, p: Predictions, _: float) -> Floats:
        return np.where(p.label == 1, late, 0.0) + exponential(rng, np.full(p.time.size, quick), within)

    return delays


def as_capacity_allows(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """As `by_hit`, but not more than a thousand labels a day's predictions, whatever the outcome."""
    return np.where(rng.random(p.time.size) < 1.0 / p.volume, by_hit()(rng, p, h), NEVER)


def paused(start: float, end: float) -> Delays:
    """As `by_hit`, but what would come between two times comes at the second, within hours."""

    def delays(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        known = p.time + by_hit()(rng, p, h - (end - start) - 0.25)
        waits = (known >= start) & (known < end)
        return np.where(waits, end + 0.25 * rng.random(known.size), known) - p.time

    return delays


def in_office_hours(hits: float, errors: float, days: int = 7) -> Delays:
    """Days: labels are due after these times, on average; what is due from 18 to 8 h comes in the morning.

    What would come after the first `days` of a week comes on the first morning of the next.
    """

    def delays(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        known = p.time + two_means(hits, errors)(rng, p, h - (8.0 - days))
        hour = 24.0 * (known % 1.0)
        morning = np.where(hour < 8.0, np.floor(known), np.floor(known) + 1.0) + 8.0 / 24.0
        open_ = (hour >= 8.0) & (hour < 18.0)
        comes = np.where(open_, known, morning + rng.random(known.size) / 24.0)
        if days < 7:
            closed = comes % 7.0 >= days
            monday = 7.0 * np.ceil(comes[closed] / 7.0)
            comes[closed] = monday + (8.0 + rng.random(monday.size)) / 24.0
        return comes - p.time

    return delays


def down_each_week(hits: float, errors: float) -> Delays:
    """Labels are due after these times, on average; on two days of seven none come, then all, in hours."""

    def delays(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        known = p.time + two_means(hits, errors)(rng, p, h - 2.25)
        day = known % 7.0
        return np.where(day < 2.0, known - day + 2.0 + 0.25 * rng.random(day.size), known) - p.time

    return delays


def of_two_sorts(share: OfTime) -> Delays:
    """As `by_error` in this share of the traffic, as `by_hit` in the rest."""

    def delays(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        first = rng.random(p.time.size) < share(p.time)
        return np.where(first, by_error(rng, p, h), by_hit()(rng, p, h))

    return delays


def just_within_the_horizon(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """Hits come in the last three days before the horizon, errors in the three before these."""
    return np.where(p.hit, h - 3.0, h - 6.0) + 2.9 * rng.random(p.time.size)


@numba.njit(error_model="numpy")
def _through_a_queue(ready, first, per_day):  # pragma: no cover
    """Times at which a queue serves what is ready; those with `first` go before the others."""
    n = ready.size
    by_time = np.argsort(ready)
    urgent, others = np.empty(n, np.int64), np.empty(n, np.int64)
    u_in = u_out = o_in = o_out = 0
    served = np.full(n, 1e6)
    free = 0.0
    i = 0
    while i < n or u_out < u_in or o_out < o_in:
        if u_out == u_in and o_out == o_in:
            free = max(free, ready[by_time[i]])
        while i < n and ready[by_time[i]] <= free:
            k = by_time[i]
            if first[k]:
                urgent[u_in] = k
                u_in += 1
            else:
                others[o_in] = k
                o_in += 1
            i += 1
        if u_out < u_in:
            k = urgent[u_out]
            u_out += 1
        else:
            k = others[o_out]
            o_out += 1
        free += 1.0 / per_day
        served[k] = free
    return served


def in_a_queue(per_day: float) -> Delays:
    """Cases are ready after a day on average and wait for one who labels so many a day, errors first."""

    def delays(rng: np.random.Generator, p: Predictions, _: float) -> Floats:
        ready = p.time + rng.exponential(1.0, p.time.size)
        return _through_a_queue(ready, ~p.hit, per_day) - p.time

    return delays


def by_high_class(first: int) -> Delays:
    """As `by_class`, of which class 1 is number `first` and class 2 the one after it."""

    def delays(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        mean = np.full(p.time.size, 15.0)
        mean[p.label == first] = 3.0
        mean[p.label == first + 1] = 30.0
        return exponential(rng, mean, h)

    return delays


def moved_up(by: int) -> Drawn:
    """Number classes 1, 2, … as 1 + `by`, …, and now and then one of those between is drawn for class 0."""

    def drawn(rng: np.random.Generator, p: Predictions) -> Predictions:
        label = np.where(p.label > 0, p.label + by, p.label)
        between = (label == 0) & (rng.random(label.size) < 0.02)
        label[between] = rng.integers(1, 1 + by, int(between.sum()))
        return replace(p, label=label)

    return drawn


def in_groups(sizes: Ints) -> Drawn:
    """Repeat each prediction, with its outcome, at its time; sizes of groups are drawn from these.

    The mean volume stays: of the predictions that were drawn only as many are taken as groups have room for.
    """

    def drawn(rng: np.random.Generator, p: Predictions) -> Predictions:
        taken = np.sort(rng.choice(p.time.size, int(p.time.size / sizes.mean()), replace=False))
        which = np.repeat(taken, rng.choice(sizes, taken.size))
        return Predictions(p.time[which], p.hit[which], p.label[which], p.volume[which])

    return drawn


def together(delays: Delays) -> Delays:
    """Predictions of one time have one delay."""

    def of_groups(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        first = np.concatenate([[True], np.diff(p.time) > 0])
        each = Predictions(p.time[first], p.hit[first], p.label[first], p.volume[first])
        return delays(rng, each, h)[np.cumsum(first) - 1]

    return of_groups


def another_version(at: float) -> Drawn:
    """From then on right with .95 of class 0 and .283 of class 1: as good as the majority of .85."""

    def drawn(rng: np.random.Generator, p: Predictions) -> Predictions:
        hit: Bools = rng.random(p.time.size) < np.where(p.label == 0, 0.95, 0.0425 / 0.15)
        return replace(p, hit=np.where(p.time < at, p.hit, hit))

    return drawn


def ahead_of_time(of_half: float, at: float = -1.0) -> Clock:
    """Clocks of half of the predictions are so far ahead, from a time on."""
    return lambda rng, p: np.where((rng.random(p.time.size) < 0.5) & (p.time >= at), of_half, 0.0)
