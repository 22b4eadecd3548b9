"""Series of pairs of models."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import DECAY, counter, gauge

_COMPARED: Final = ("challenger", "champion")
COMPARISONS: Final = (
    counter("comparison_pairs_total", "Ids on which two models were compared.", *_COMPARED),
    gauge("comparison_last_pair_timestamp_seconds", "Event time of the last pair.", *_COMPARED),
    *(
        gauge(name, f"{text} ({formula}; {DECAY}).", *_COMPARED, "forgetting")
        for name, text, formula in (
            (
                "comparison_q",
                "Log of the champion's losses over the challenger's on the same ids",
                "ln(S_A/S_B)",
            ),
            (
                "comparison_mcnemar",
                "McNemar's statistic, signed as comparison_q; descriptive: in time it passes any fixed level",
                "sign(n01-n10)(n01-n10)²/(n01+n10)",
            ),
            (
                "comparison_mcnemar_calibrated",
                "McNemar's statistic with the variance that fading leaves: χ²(1) at one time; descriptive",
                "sign(D)D²/V",
            ),
            (
                "comparison_champion_error_ratio",
                "Error of the champion on the ids of the comparison",
                "S_A/Σw",
            ),
            (
                "comparison_challenger_error_ratio",
                "Error of the challenger on the ids of the comparison",
                "S_B/Σw",
            ),
            ("comparison_champion_right_alone", "Pairs that the champion alone got right", "n10"),
            ("comparison_challenger_right_alone", "Pairs that the challenger alone got right", "n01"),
            (
                "comparison_effective_sample_size",
                "Pairs that the estimates under this forgetting are worth",
                "(Σw)²/Σw²",
            ),
        )
    ),
    gauge(
        "comparison_verdict",
        "1 if the challenger is better than the champion, -1 if worse, 0 if open, however often one looks; "
        "false within monitors.verdict_outcomes pairs with probability monitors.confidence_delta.",
        *_COMPARED,
    ),
    gauge(
        "comparison_verdict_since_timestamp_seconds",
        "Event time from which the verdict holds; of an open one, when it opened.",
        *_COMPARED,
    ),
    gauge("comparison_verdict_since_pair", "Number of the pair from which the verdict holds.", *_COMPARED),
    gauge(
        "comparison_verdict_evidence",
        "Evidence that the challenger is better or worse: 0 none, 1 a verdict, then 0 again.",
        *_COMPARED,
        "side",
    ),
    gauge(
        "comparison_lead",
        "Mean utility of the challenger less that of the champion, -1 to 1, since the verdict last changed.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_lower",
        "Lower limit of the mean lead at monitors.confidence_delta, looked at as often as one likes.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_upper",
        "Upper limit of the mean lead at monitors.confidence_delta, looked at as often as one likes.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_dispersion",
        "Variance of the lead's sums beside that of independent pairs: divides the evidence.",
        *_COMPARED,
    ),
)
