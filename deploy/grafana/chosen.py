"""What a viewer chooses on top of a dashboard, selectors of what was chosen, and how lines look."""
# ruff: noqa: INP001  # run from the root as `python -m deploy.grafana.generate`, part of no package

from __future__ import annotations

from collections.abc import Callable

from deploy.grafana.panels import Variable

TARGET = 'job=~"$job", instance=~"$instance"'
UNDER = 'forgetting="$forgetting"'


def of(metric: str, *matchers: str) -> str:
    """A selector of a metric of the chosen targets; those of the process have no prefix."""
    prefix = "" if metric.startswith("process_") else "streamwatch_"
    return f"{prefix}{metric}{{{', '.join((TARGET, *matchers))}}}"


def mine(metric: str, *matchers: str) -> str:
    """A selector of a metric of the chosen model."""
    return of(metric, 'model="$model"', *matchers)


def most(expr: str, by: str = "") -> str:
    """The largest, or the largest for each value of a label: one line where a restart left two series."""
    return f"max by ({by}) ({expr})" if by else f"max({expr})"


def on(opponent: str) -> str:
    """Selector of verdicts on an opponent."""
    return f'opponent="{opponent}"'


def verdict(of_metric: Callable[..., str], opponent: str, by_cohorts: str) -> str:
    """Verdict on an opponent as recording rules and the page have it, of the series that `of_metric` selects.

    It is by cohorts of predictions, on the opponent `by_cohorts`, where the headline of the model is;
    otherwise in the order of labels, on `opponent`.
    """
    headline = of_metric("cohort_headline")
    judged = f"max without (opponent) ({of_metric('cohort_verdict', on(by_cohorts))}) and {headline}"
    labelled = f"max without (opponent) ({of_metric('verdict', on(opponent))}) unless {headline}"
    return f"({judged}) or ({labelled})"


def than_no_change(of_metric: Callable[..., str]) -> str:
    """Verdict on no change: the last label known at the prediction by cohorts, else the previous label."""
    return verdict(of_metric, "persistent", "persistent_at_prediction")


def than_majority(of_metric: Callable[..., str]) -> str:
    """Verdict on always predicting the most frequent class."""
    return verdict(of_metric, "majority", "majority")


VERDICTS = {
    "mappings": [
        {
            "type": "value",
            "options": {
                "1": {"text": "better", "color": "green", "index": 0},
                "0": {"text": "open", "color": "text", "index": 1},
                "-1": {"text": "WORSE", "color": "red", "index": 2},
            },
        }
    ]
}
DASHED = {"custom.lineStyle": {"fill": "dash", "dash": [8, 6]}}
DOTTED = {"custom.lineStyle": {"fill": "dot", "dash": [2, 6]}}
BARS = {"drawStyle": "bars", "fillOpacity": 60, "stacking": {"mode": "normal", "group": "A"}}

JOB = Variable("job", "Job", "label_values(streamwatch_build_info, job)", several=True)
INSTANCE = Variable(
    "instance", "Instance", 'label_values(streamwatch_build_info{job=~"$job"}, instance)', several=True
)
MODEL = Variable("model", "Model", f"label_values({of('effective_sample_size')}, model)")
FORGETTING = Variable(
    "forgetting",
    "Forgetting",
    f"label_values({of('effective_sample_size')}, forgetting)",
    value="fading:0.999",
)
DETECTOR = Variable(
    "detector", "Detector", f"label_values({mine('detector_threshold')}, detector)", several=True
)
