"""Follow the faded error of a model from a drift until it is back (recovery analysis).

A drift begins with an alarm of a detector at a rise of the error, or with a verdict that becomes worse. It
dates from a sample of the error, of which every 2^shift-th outcome leaves one:

    verdict     the last sample before the outcome since which the model is worse
    detector    of the memory length before the alarm, the last sample at which the error was no higher than
                at the first, which is the last one that is at least a memory length old, or the oldest

A drift from before the oldest of the 64 samples that are kept has no known error before it and is not
followed. With e that sample's error and ε its Hoeffding bound, over the outcomes since then:

    depth       highest error − e, at least 0
    length      outcomes until the first from the highest error on at which the error is ≤ e + ε; 0 if the
                highest is, too

The drift ends as recovered once its length is known and a memory length has passed since the alarm: sooner,
the error may not have risen yet. After `longest` outcomes it ends as not recovered. Alarms before its end
belong to it. Before its alarm the error is known at samples only.

A verdict on a model with folds begins a drift of the fold at whose outcome it became worse. It numbers the
outcome since which it holds as the fold with the strongest bet does; another fold may not have got that far.

Source: recovery analysis, Shaker, Hüllermeier, *Recovery analysis for adaptive learning from non-stationary
data streams*, Neurocomputing 150, 2015; Brzezinski, Stefanowski, §1; Cervantes et al., §2.4.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import sqrt

import numpy as np

from streamwatch.core.estimators.memory.totals import HITS, N
from streamwatch.core.estimators.recovery.state import SAMPLES
from streamwatch.core.jit import hot, inner


@hot
def observe_recovery(m, parameters, event_ms, alarms, first, count):
    """Follow the error after an outcome; rows of `alarms` from `first` up to `count` are of this outcome."""
    for k in range(len(m.recovery)):
        if m.outcomes >= m.follow_at or count > first:
            follow(m, m.recovery[k], parameters.recovery[k], event_ms, alarms, first, count)


@inner
def follow(m, r, p, event_ms, alarms, first, count):
    """Let a drift go on, begin or end; keep a sample of the error if one is due."""
    unit = m.fading[0].unit
    n = m.totals[N, 0]
    error = 1.0 - (m.totals[HITS, 0] / unit) / (n / unit)
    if r.since == 0 and count > first:
        begin(r, p, m.outcomes, event_ms, alarms, first, count)
    if r.since > 0:
        take(r, error, m.outcomes)
        end(r, p, m.outcomes)
    at = m.outcomes >> p.shift
    m.follow_at = m.outcomes + 1 if r.since > 0 else (at + 1) << p.shift
    if at << p.shift == m.outcomes:
        sample = r.samples[at & (SAMPLES - 1)]
        sample.error = error
        sample.n_eff = n * n / m.fading[0].squares
        r.sampled += 1


@inner
def begin(r, p, outcome, event_ms, alarms, first, count):
    """Begin a drift if the error rose or a verdict became worse, and there is a sample from before."""
    rose = False
    since = 0
    for i in range(first, count):
        alarm = alarms[i]
        if alarm.since > 0:
            if alarm.after < 0.0:
                rose = True
                since = alarm.since
        elif alarm.after > alarm.before:
            rose = True
    if not rose or r.sampled == 0:
        return
    newest = (outcome - 1) >> p.shift
    oldest = newest - min(r.sampled, SAMPLES) + 1
    start = min((since - 1) >> p.shift, newest)
    if since > 0 and start < oldest:
        return
    if since == 0:
        level = r.samples[max((outcome - p.memory) >> p.shift, oldest) & (SAMPLES - 1)].error
        start = newest
        while r.samples[start & (SAMPLES - 1)].error > level:
            start -= 1
    sample = r.samples[start & (SAMPLES - 1)]
    r.since = start << p.shift
    r.alarmed = outcome
    r.alarm_ms = event_ms
    r.before = sample.error
    r.limit = sample.error + sqrt(p.of_bound / sample.n_eff)
    r.peak = -1.0
    r.back = 0
    for k in range(start + 1, newest + 1):
        take(r, r.samples[k & (SAMPLES - 1)].error, k << p.shift)


@inner
def take(r, error, outcome):
    """Let the drift under way see the error after an outcome."""
    if error > r.peak:
        r.peak = error
        r.back = 0
    if r.back == 0 and error <= r.limit:
        r.back = outcome


@inner
def end(r, p, outcome):
    """End the drift under way if the model has recovered from it, or took too long."""
    if r.back > 0 and outcome - r.alarmed >= p.memory:
        r.outcomes = float(r.back - r.since) if r.peak > r.limit else 0.0
        r.outcomes_sum += r.outcomes
        r.lengths[bucket_of(p.lengths, r.outcomes)] += 1
        r.recovered += 1
    elif outcome - r.since >= p.longest:
        r.outcomes = np.nan
        r.not_recovered += 1
    else:
        return
    r.depth = max(r.peak - r.before, 0.0)
    r.depth_sum += r.depth
    r.depths[bucket_of(p.depths, r.depth)] += 1
    r.since = 0
    r.alarmed = 0
    r.alarm_ms = 0
    r.before = 0.0
    r.limit = 0.0
    r.peak = 0.0
    r.back = 0


@inner
def bucket_of(bounds, value):
    """Index of the first bound that is not below a value; their number if all are."""
    k = 0
    while k < len(bounds) and value > bounds[k]:
        k += 1
    return k


@inner
def copy_traced(r, traced):
    """Copy what a trace has of a record."""
    traced.since = r.since
    traced.alarm_ms = r.alarm_ms
    traced.before = r.before
    traced.limit = r.limit
    traced.peak = r.peak
    traced.recovered = r.recovered
    traced.not_recovered = r.not_recovered
    traced.depth = r.depth
    traced.outcomes = r.outcomes
