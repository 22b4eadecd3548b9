"""The estimators that tests share, so that nobody compiles kernels of their own.

What is compiled depends on how many estimators of each kind there are, and on the widths that `max_classes`
and `shadow_max_classes` ask for; parameters are free. A test that needs others takes `replace(DEFAULT, …)` or
`replace(EVERYTHING, …)` with as many of each kind, or is marked slow.

    python -m tests.layouts

compiles all of them ahead (minutes, once), before workers start that would compile them side by side.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from streamwatch.core.buckets.histories import warm_up_buckets
from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.detectors.ewma import EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.stepd import StepdSpec
from streamwatch.core.estimators.registers import KINDS
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.warming import warm_up_commits, warm_up_join, warm_up_overflow
from streamwatch.core.merge.merge import warm_up_merge
from streamwatch.core.predictions import KINDS as PREDICTION_KINDS
from streamwatch.core.predictions.registers import warm_up_predictions
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    ComparisonSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
    UtilitySpec,
)
from streamwatch.edge.decoders.scanner.reader import compile_reader
from streamwatch.edge.decoders.transcoding.avro import compile_avro_transcoder
from streamwatch.edge.decoders.transcoding.protobuf import compile_protobuf_transcoder
from streamwatch.edge.sources.kafka.batches.opened import compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.history.outcome_rows.lines import warm_up_rows

TINY = MonitorsSpec((LandmarkSpec(),), (), (), max_models=1, max_classes=4, per_class="landmark")
"""The landmark alone."""

DEFAULT = MonitorsSpec()
"""What settings that say nothing ask for."""

EVERYTHING = MonitorsSpec(
    forgetting=(
        LandmarkSpec(),
        FadingSpec(0.999),
        FadingSpec(0.6),
        SlidingSpec(50),
        SlidingSpec(7),
        AdwinSpec(),
        AdwinSpec(delta=0.05, min_subwindow=7, clock=1, dependence="ignored"),
    ),
    detectors=(
        PageHinkleySpec(threshold=5.0),
        AdwinDriftSpec(),
        PageHinkleySpec(
            "both",
            tolerance=0.01,
            threshold=4.0,
            alpha=0.99,
            min_outcomes=10,
            dependence="ignored",
            form="paper",
            direction="both",
        ),
        PageHinkleySpec("down", threshold=3.0, alpha=1.0, direction="down"),
        AdwinDriftSpec(
            "adwin_both", delta=0.05, min_subwindow=7, clock=1, dependence="ignored", direction="both"
        ),
        AdwinDriftSpec("adwin_down", delta=0.1, direction="down"),
        PageHinkleySpec("rate", tolerance=0.001, threshold=1.5, alpha=1.0, input="error_rate"),
        PageHinkleySpec(
            "rate_both", tolerance=0.001, threshold=1.0, form="paper", direction="both", input="error_rate"
        ),
        DdmSpec(),
        DdmSpec("ddm_early", min_outcomes=10, warning_level=1.5, alarm_level=2.0),
        CusumSpec(threshold=5.0),
        CusumSpec(
            "cusum_expected",
            expected=0.157,
            allowance=0.031,
            threshold=8.0,
            min_outcomes=10,
            direction="both",
        ),
        HddmASpec(),
        HddmASpec("hddm_a_both", delta=0.01, warning_delta=0.05, direction="both"),
        HddmWSpec(weight=0.05, delta=0.001, warning_delta=0.005),
        HddmWSpec("hddm_w_down", weight=0.02, delta=0.01, warning_delta=0.1, direction="down"),
        EwmaSpec(weight=0.02, alarm_level=3.0),
        EwmaSpec("ewma_paper", weight=0.2, min_outcomes=30, limits="paper", direction="both"),
        StepdSpec(recent=30, significance=0.003, warning_significance=0.05),
        StepdSpec("stepd_both", recent=50, significance=0.01, warning_significance=0.1, direction="both"),
        KswinSpec(recent=30, older=70, significance=0.005),
        KswinSpec("kswin_short", recent=40, older=20, significance=0.02, direction="both"),
    ),
    drift_weighted=(
        DriftWeightedSpec(),
        DriftWeightedSpec(w_avg=2.0, delta=0.002, dependence="ignored"),
        DriftWeightedSpec(w_avg=4.0, alpha=0.99),
        DriftWeightedSpec(drift_signal="labels", delta=0.1),
        DriftWeightedSpec(drift_signal="reference", reference="first", alpha=0.999),
    ),
    max_models=6,
    max_classes=40,
    utilities=(UtilitySpec(), UtilitySpec("fair", "balanced")),
)
"""Several of every kind, none at its default count, some sharing a window.

All models are judged by accuracy, but there is room for what balanced verdicts need.
"""

BALANCED = replace(DEFAULT, utilities=(UtilitySpec("fair", "balanced"), UtilitySpec()))
"""What settings that say nothing ask for, and a balanced utility."""

CLOCKED = replace(TINY, max_models=3, registers=(PredictionClockSpec(),))
"""The landmark alone, and a detector in the order of predictions, which has a table of its own."""

JUDGED = replace(TINY, registers=(CohortsSpec(),))
"""The landmark alone, and verdicts by cohorts, which settings that say nothing ask for."""

REGISTERED = replace(
    TINY, registers=tuple(kind.spec() for kind in KINDS), comparisons=(ComparisonSpec("a", ("b",)),)
)
"""The landmark alone, every kind of register and a comparison, whose functions are for all estimators."""

LAYOUTS = {
    "tiny": TINY,
    "default": DEFAULT,
    "everything": EVERYTHING,
    "balanced": BALANCED,
    "prediction clock": CLOCKED,
    "cohorts": JUDGED,
    "registers and comparisons beside": REGISTERED,
}


def main() -> None:
    """Compile what is not there yet, and say what was done."""
    for name, spec in LAYOUTS.items():
        began = time.monotonic()
        warmth = warm_up(spec, tracing=spec is not TINY)
        sys.stdout.write(
            f"{name} estimators of tests: {warmth.compiled} functions compiled, {warmth.loaded} were there, "
            f"{time.monotonic() - began:.1f} s\n"
        )
        sys.stdout.flush()
    began = time.monotonic()
    warm_up_join()
    warm_up_commits()
    warm_up_overflow()
    warm_up_buckets()
    warm_up_predictions(tuple(kind.spec() for kind in PREDICTION_KINDS))
    warm_up_merge()
    compiled_scan()
    compiled_plain_batches()
    compile_reader()
    compile_avro_transcoder()
    compile_protobuf_transcoder()
    warm_up_rows()
    sys.stdout.write(f"join, merge and readers: {time.monotonic() - began:.1f} s\n")


if __name__ == "__main__":
    main()
