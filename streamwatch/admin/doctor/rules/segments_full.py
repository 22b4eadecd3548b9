"""A segment has more values than have estimates of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts, MetricSamples
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.core.segments import OTHER

LEAST: Final = 0.05
"""Share of a segment's outcomes that are told apart no more, from which on it is said."""


def _find(facts: Facts) -> Iterator[Finding]:
    for (name, labels), count in sorted(facts.now.samples.items(), key=lambda sample: -sample[1]):
        of = dict(labels)
        if name == "segment_outcomes_left_out_total" and count:
            yield Finding(
                Weight.INCOMPLETE,
                f"segment {of['segment']} of model {of['model']}",
                f"lacks {count:,.0f} outcomes, because there was no room for their values",
                "all models together have more values than monitors.segments.max_total",
                "map fewer segments or fields with fewer values, or monitors: {segments: {max_total: …}}",
            )
        elif name == "segment_outcomes_total" and of["value"] == OTHER:
            counted = _outcomes(facts.now, of["model"], of["segment"])
            if count >= LEAST * counted > 0:
                yield Finding(
                    Weight.WORTH_KNOWING,
                    f"segment {of['segment']} of model {of['model']}",
                    f"has {count / counted:.1%} of its outcomes in {OTHER}",
                    "it has more values than can have estimates of their own, or the mapped field is an id",
                    "monitors: {segments: {max_values: …}}, or a field with fewer values",
                )


def _outcomes(now: MetricSamples, model: str, segment: str) -> float:
    """Outcomes of a segment of a model that count in some value."""
    return now.total("segment_outcomes_total", model=model, segment=segment)


RULE = Rule("segments_full", _find)
