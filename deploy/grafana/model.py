"""The dashboard *Model*: everything of one, from its accuracy to its labels."""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from deploy.grafana.chosen import (
    DASHED,
    DETECTOR,
    DOTTED,
    FORGETTING,
    INSTANCE,
    JOB,
    MODEL,
    UNDER,
    VERDICTS,
    mine,
    most,
    than_majority,
    than_no_change,
)
from deploy.grafana.drift_and_labels import DRIFT, LABELS
from deploy.grafana.early_and_late import EARLY_AND_LATE
from deploy.grafana.panels import Dashboard, Panel, Query, Row

_LOWER = most(mine("accuracy_bound_ratio", 'bound="hoeffding"', UNDER))
_UPPER = most(mine("accuracy_bound_ratio", 'bound="hoeffding_upper"', UNDER))
_PERSISTENT = most(mine("baseline_accuracy_ratio", 'baseline="persistent"', UNDER))
_MAJORITY = most(mine("baseline_accuracy_ratio", 'baseline="majority"', UNDER))


_BOLD = {"custom.lineWidth": 2}
_BAND = {"custom.fillBelowTo": "at least", "custom.fillOpacity": 12, "custom.lineWidth": 0}

_GUESSING = Row(
    "Is it better than guessing?",
    (
        Panel(
            "Accuracy",
            "Share of outcomes it got right, under the forgetting chosen above.",
            (Query(most(mine("accuracy_ratio", UNDER))),),
            "percentunit",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Than no change",
            "Currently, by the utility that monitors.utility sets: than the last label known at the "
            "prediction, or, until there is a verdict by prediction time, than the previous label. Look as "
            "often as you like; where losses depend on earlier ones, it is false more often. Open: neither "
            "is shown.",
            (Query(most(than_no_change(mine))),),
            "none",
            kind="stat",
            width=4,
            height=4,
            defaults=VERDICTS,
        ),
        Panel(
            "Than the majority class",
            "As beside, against always predicting the most frequent class.",
            (Query(most(than_majority(mine))),),
            "none",
            kind="stat",
            width=4,
            height=4,
            defaults=VERDICTS,
        ),
        Panel(
            "κ⁺",
            "Geometric mean of the gains over chance and over the previous label; 0 unless both are "
            "positive.",
            (Query(most(mine("kappa_plus", UNDER))),),
            "none",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Last alarm",
            "Event time of the outcome that raised the latest alarm, of whichever detector.",
            (Query(f"max({mine('last_alarm_timestamp_seconds')}) * 1000"),),
            "dateTimeFromNow",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Effective sample size",
            "How many outcomes the estimates are worth under the forgetting chosen above.",
            (Query(most(mine("effective_sample_size", UNDER))),),
            "short",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Accuracy, its limits and its baselines",
            "The band is Hoeffding's, at monitors.confidence_delta and for independent losses. Dashed: "
            "classifiers that see labels only. Below the dashed line 'persistent' the model is worse than "
            "no model.",
            (
                Query(_UPPER, "at most"),
                Query(_LOWER, "at least"),
                Query(most(mine("accuracy_ratio", UNDER)), "accuracy"),
                Query(most(mine("baseline_accuracy_ratio", UNDER), by="baseline"), "{{baseline}}"),
            ),
            "percentunit",
            height=10,
            styles={
                "^(?!accuracy|at )": DASHED,
                "^(random|uninformed|transition|temporal)": DOTTED,
                "^accuracy$": _BOLD,
                "^at most$": _BAND,
                "^at least$": {"custom.lineWidth": 0},
            },
        ),
        Panel(
            "Accuracy under each forgetting",
            "The same measure over different pasts: landmark remembers everything, fading and sliding the "
            "last outcomes, adwin as many as look alike. Decay is per outcome, not per second.",
            (Query(most(mine("accuracy_ratio"), by="forgetting"), "{{forgetting}}"),),
            "percentunit",
            height=10,
        ),
        Panel(
            "κ family",
            "Gains over chance (κ), over the majority class (κ_m), over the previous label (κ_per), and "
            "κ⁺: 1 is perfect, 0 no better, below 0 worse. MCC beside them.",
            (
                Query(most(mine("kappa", UNDER)), "κ"),
                Query(most(mine("kappa_majority", UNDER)), "κ_m"),
                Query(most(mine("kappa_persistent", UNDER)), "κ_per"),
                Query(most(mine("kappa_plus", UNDER)), "κ⁺"),
                Query(most(mine("mcc", UNDER)), "MCC"),
            ),
            "none",
            styles={"^κ_per$": _BOLD, "^MCC$": DOTTED},
        ),
        Panel(
            "Recall of each class",
            "Share of each class's outcomes that was recognised, under the forgetting monitors.per_class "
            "names.",
            (Query(most(mine("recall_ratio"), by="class"), "{{class}}"),),
            "percentunit",
        ),
    ),
)

MODEL_DASHBOARD = Dashboard(
    uid="streamwatch-model",
    title="streamwatch / Model",
    description="One model: better than guessing, since when not, and do its labels come?",
    variables=(JOB, INSTANCE, MODEL, FORGETTING, DETECTOR),
    alarms=f"{mine('last_alarm_timestamp_seconds')} * 1000",
    links={"Models": "/d/streamwatch-models?${__url_time_range}"},
    rows=(_GUESSING, DRIFT, LABELS, EARLY_AND_LATE),
)
