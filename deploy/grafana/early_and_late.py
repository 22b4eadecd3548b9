"""A row of the dashboard *Model*: what late labels leave out, scores, segments, predictions before labels."""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from deploy.grafana.chosen import DASHED, DOTTED, UNDER, mine, most
from deploy.grafana.panels import Panel, Query, Row

_ON_THE_RIGHT = {"custom.axisPlacement": "right", "unit": "none"}

EARLY_AND_LATE = Row(
    "Before labels come, and while they are late",
    (
        Panel(
            "Accuracy, corrected for late labels",
            "Corrected: each outcome stands for those of its kind whose labels have not come. Settled: of "
            "predictions old enough to have all labels. Bias below 0: what is seen is too low.",
            (
                Query(most(mine("accuracy_ratio", UNDER)), "as labelled so far"),
                Query(most(mine("accuracy_delay_corrected_ratio")), "corrected"),
                Query(most(mine("accuracy_settled_ratio")), "settled"),
                Query(most(mine("label_delay_bias")), "bias"),
            ),
            "percentunit",
            styles={"^settled$": DASHED, "^bias$": {**DOTTED, **_ON_THE_RIGHT}},
        ),
        Panel(
            "Predictions labelled in the end",
            "Share that gets a label, those still waiting counted as censored; with monitors.label_delays. "
            "As far as ages reach by now.",
            (Query(most(mine("predictions_labelled_ratio")), "labelled"),),
            "percentunit",
        ),
        Panel(
            "Detectors in the order of predictions",
            "Outcomes that wait until all earlier predictions have their labels. On the right, a second: "
            "those seen out of order, late or because too many waited. With monitors.detector_clocks.",
            (
                Query(most(mine("prediction_clock_waiting_outcomes")), "waiting"),
                Query(
                    f"sum(rate({mine('prediction_clock_disordered_total')}[$__rate_interval]))",
                    "out of order",
                ),
            ),
            "short",
            styles={"^out of order$": {**DOTTED, **_ON_THE_RIGHT}},
        ),
        Panel(
            "Predictions settled until",
            "How far back lies the prediction up to which detectors in that order have seen all. It is a "
            "horizon at least; more: outcomes of the model come no longer.",
            (
                Query(
                    f"time() - {most(mine('prediction_clock_settled_until_timestamp_seconds'))}", "behind by"
                ),
            ),
            "s",
        ),
        Panel(
            "Early hints",
            "Evidence that predictions differ from earlier ones, before their labels are in; 1 is a hint. A "
            "change of predictions is no proof of more errors. With monitors.early_hints.",
            (
                Query(most(mine("early_hint_evidence")), "evidence"),
                Query(most(mine("early_hint")), "a hint stands"),
            ),
            "none",
            styles={"stands$": DOTTED},
        ),
        Panel(
            "Accuracy that scores expect",
            "How often scores like those of the latest predictions were right, beside what labels say. "
            "Dashed: by how much it was off, and dotted that of a forecast without scores.",
            (
                Query(most(mine("expected_accuracy_ratio")), "expected"),
                Query(most(mine("accuracy_ratio", UNDER)), "by labels"),
                Query(most(mine("expected_accuracy_error_ratio")), "off by"),
                Query(most(mine("unchanged_accuracy_error_ratio")), "without scores off by"),
            ),
            "percentunit",
            styles={"^off by$": DASHED, "^without": DOTTED},
        ),
        Panel(
            "Probabilities",
            "Of models that send scores, with monitors.probabilities: losses under the forgetting chosen "
            "above, calibration error and area under the ROC curve.",
            (
                Query(most(mine("log_loss", UNDER)), "log loss"),
                Query(most(mine("brier_score", UNDER)), "Brier score"),
                Query(most(mine("calibration_error_ratio")), "calibration error"),
                Query(most(mine("auc_ratio")), "AUC"),
            ),
            "none",
        ),
        Panel(
            "Accuracy by segment",
            "The ten values of segments in which the model is right least often; __other__ are those "
            "without estimates of their own.",
            (
                Query(
                    f"bottomk(10, {most(mine('segment_accuracy_ratio'), by='segment, value')})",
                    "{{segment}} {{value}}",
                ),
            ),
            "percentunit",
        ),
        Panel(
            "Where the extra errors are",
            "Share of the errors beyond those of the past that each value of a segment has, of late.",
            (
                Query(
                    f"topk(10, {most(mine('segment_extra_errors_ratio'), by='segment, value')})",
                    "{{segment}} {{value}}",
                ),
            ),
            "percentunit",
        ),
    ),
)
