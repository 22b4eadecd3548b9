"""Series of pairs of models."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import DECAY, counter, gauge

_COMPARED: Final = ("challenger", "champion")
COMPARISONS: Final = (
    counter("comparison_pairs_total", "Ids on which the two models were compared.", *_COMPARED),
    gauge("comparison_last_pair_timestamp_seconds", "Event time of the latest compared pair.", *_COMPARED),
    *(
        gauge(name, f"{text} ({formula}; {DECAY}).", *_COMPARED, "forgetting")
        for name, text, formula in (
            (
                "comparison_q",
                "Logarithm of the champion's losses divided by the challenger's, on the same ids",
                "ln(S_A/S_B)",
            ),
            (
                "comparison_mcnemar",
                "McNemar's statistic, signed like comparison_q; descriptive: it exceeds any level in time",
                "sign(n01-n10)(n01-n10)²/(n01+n10)",
            ),
            (
                "comparison_mcnemar_calibrated",
                "McNemar's statistic with the variance under fading, χ²(1) at one time; descriptive",
                "sign(D)D²/V",
            ),
            (
                "comparison_champion_error_ratio",
                "Error of the champion on the compared ids",
                "S_A/Σw",
            ),
            (
                "comparison_challenger_error_ratio",
                "Error of the challenger on the compared ids",
                "S_B/Σw",
            ),
            ("comparison_champion_right_alone", "Pairs that only the champion got right", "n10"),
            ("comparison_challenger_right_alone", "Pairs that only the challenger got right", "n01"),
            (
                "comparison_effective_sample_size",
                "Effective number of pairs under this forgetting",
                "(Σw)²/Σw²",
            ),
        )
    ),
    gauge(
        "comparison_verdict",
        "1 if the challenger is better than the champion, -1 if worse, 0 if open. "
        "False within monitors.verdict_outcomes pairs with probability monitors.confidence_delta, "
        "however often it is read, if losses do not depend on earlier ones.",
        *_COMPARED,
    ),
    gauge(
        "comparison_verdict_since_timestamp_seconds",
        "Event time since which the verdict holds; of an open verdict, the time at which it became open.",
        *_COMPARED,
    ),
    gauge("comparison_verdict_since_pair", "Number of the pair since which the verdict holds.", *_COMPARED),
    gauge(
        "comparison_verdict_evidence",
        "Evidence that the challenger is better or worse, from 0 (none) to 1 (a verdict); it "
        "restarts at 0 after a verdict.",
        *_COMPARED,
        "side",
    ),
    gauge(
        "comparison_lead",
        "Mean utility of the challenger minus that of the champion, from -1 to 1, since the "
        "verdict last changed.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_lower",
        "Lower bound of the mean lead at monitors.confidence_delta, however "
        "often it is read, if losses do not depend on earlier ones.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_upper",
        "Upper bound of the mean lead at monitors.confidence_delta, however "
        "often it is read, if losses do not depend on earlier ones.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_dispersion",
        "Variance of the lead's sums relative to that of independent pairs; the evidence is divided by it.",
        *_COMPARED,
    ),
)
