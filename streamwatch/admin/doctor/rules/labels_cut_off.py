"""Labels were still coming when predictions expired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.core.predictions.label_delays.register import BINS
from streamwatch.core.series import detail_at

LEAST: Final = 0.05
"""Share of the labels that come in the last bin of delay, the last fifth of the horizon."""
UNLABELLED: Final = 0.01
"""Share of predictions without a label; where all are labelled in time nothing is cut off."""


def _find(facts: Facts) -> Iterator[Finding]:
    for model, details in sorted(facts.details.items()):
        shares = detail_at(details, "label_delays", "labelled")
        if isinstance(shares, list) and len(shares) == BINS:
            before, whole = (float(share) for share in shares[-2:] if isinstance(share, int | float))
            last = whole - before
            if last >= LEAST * whole > 0.0 and whole <= 1.0 - UNLABELLED:
                yield _finding(model, whole, last)


def _finding(model: str, whole: float, last: float) -> Finding:
    return Finding(
        Weight.INCOMPLETE,
        f"model {model}",
        f"has labels for {whole:.1%} of its predictions when these expire, {last / whole:.1%} of them from "
        "the last fifth of join.horizon",
        "labels were still arriving when the predictions expired; late labels differ from early ones, so "
        "the accuracy is that of quick labels",
        "join: {horizon: …}: try twice as long; label_delays on the model's page shows when labels arrive",
    )


RULE = Rule("labels_cut_off", _find)
