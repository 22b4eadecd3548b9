"""A runnable example of everything in the catalogue; `generate` puts them on its page, a test runs them.

They are read from the first to the last, as one session. What stands behind `# =` is the same number by hand,
from the counts that `SESSION` names; the test computes it, too.
"""

# ruff: noqa: INP001  # beside the script that reads it
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SESSION: Final = """\
>>> from streamwatch import Evaluator
>>> truth, predicted = list("aaaabbbaabbbaaaaabbb"), list("aaabbbaaabbaaaabaabb")
>>> seen = Evaluator()
>>> alarms = seen.update(truth, predicted)
"""
SAID: Final = (
    "The examples form one session. Most of them use these 20 outcomes, of which 15 are hits: 11 labels are "
    "`a` (9 of them recognised) and 9 are `b` (6 recognised); 12 predictions are `a`; and 14 of 19 labels "
    "repeat the previous one. After `# =`, the same number is computed by hand."
)

_LATER: Final = """\
>>> later = Evaluator()
>>> alarms = later.update(["a"] * 1500, ["b"] * 1000 + ["a"] * 500)
"""
MECHANISMS: Final[Mapping[str, str]] = {
    "landmark": f"""\
{_LATER}>>> round(later.value("accuracy_ratio", "landmark"), 4)  # = 500/1500
0.3333
""",
    "fading": """\
>>> round(later.value("accuracy_ratio", "fading:0.999"), 4)  # = (1 - .999**500)/(1 - .999**1500)
0.5066
>>> round(seen.value("effective_sample_size", "fading:0.999"), 4)  # = 1999*(1 - .999**20)/(1 + .999**20)
19.9993
""",
    "sliding": """\
>>> later.value("accuracy_ratio", "sliding:1000")  # = 500/1000
0.5
""",
    "adwin": """\
>>> later.value("accuracy_ratio", "adwin:0.05") > 0.9  # what was before the jump is cut off
True
""",
}


def _seen(name: str, by_hand: str, shown: str, digits: int = 4) -> str:
    return f'>>> round(seen.value("{name}"), {digits})  # = {by_hand}\n{shown}\n'


MEASURES: Final[Mapping[str, str]] = {
    name: _seen(name, by_hand, shown)
    for name, by_hand, shown in (
        ("accuracy_ratio", "15/20", "0.75"),
        ("kappa", "(.75 - (11*12 + 9*8)/20**2)/(1 - (11*12 + 9*8)/20**2)", "0.4898"),
        ("kappa_majority", "(15/20 - 11/20)/(1 - 11/20)", "0.4444"),
        ("kappa_majority_prequential", "(15/20 - 9/19)/(1 - 9/19)", "0.525"),
        ("kappa_persistent", "(15/20 - 14/19)/(1 - 14/19)", "0.05"),
        ("kappa_plus", "sqrt((.75 - .51)/(1 - .51) * .05)", "0.1565"),
        ("mcc", "(.75 - .51)/sqrt((.55*.45 + .45*.55) * (.6*.4 + .4*.6))", "0.4924"),
        ("arithmetic_mean_recall_ratio", "(9/11 + 6/9)/2", "0.7424"),
        ("geometric_mean_recall_ratio", "sqrt(9/11 * 6/9)", "0.7385"),
        ("harmonic_mean_recall_ratio", "2/(11/9 + 9/6)", "0.7347"),
        ("macro_f1_ratio", "(2*9/(11 + 12) + 2*6/(9 + 8))/2", "0.7442"),
        ("kappa_standard_error", "sqrt(.75*.25/20)/(1 - .51)", "0.1976"),
        ("kappa_zscore", "(.75 - .51)*sqrt(20)/sqrt(.51 + .51**2 - .33*1.15 - .18*.85)", "2.2019"),
        ("loss_autocorrelation", "(0/19 - .25**2)/(.25*.75)", "-0.3333"),
        ("effective_sample_size_autocorrelated", "20*(1 + 1/3)/(1 - 1/3)", "40.0"),
        ("temporal_dependence", "14/19 - 11/20", "0.1868"),
    )
}
PER_CLASS: Final[Mapping[str, str]] = {
    name: f'>>> round(seen.value("{name}:a", "fading:0.999"), 2)  # = {by_hand}\n{shown}\n'
    for name, by_hand, shown in (
        ("recall_ratio", "9/11", "0.82"),
        ("precision_ratio", "9/12", "0.75"),
        ("class_truth_ratio", "11/20", "0.55"),
        ("class_predicted_ratio", "12/20", "0.6"),
    )
}
_C: Final = ".55333"  # 3 ln(2/δ)/n for δ = .05 and n = 20
_ROOT: Final = f"sqrt({_C}*1{_C})"
BOUNDS: Final[Mapping[str, str]] = {
    name: _seen(f"accuracy_bound_ratio:{name}", by_hand, shown)
    for name, by_hand, shown in (
        ("hoeffding", ".75 - sqrt(log(2/.05)/(2*20))", "0.4463"),
        ("hoeffding_upper", "min(1, .75 + sqrt(log(2/.05)/(2*20)))", "1.0"),
        ("chernoff", f"1 - ({_C} + .5 + {_ROOT})/2", "0.0098"),
        ("chernoff_upper", f"1 - ({_C} + .5 - {_ROOT})/2", "0.9369"),
    )
}
_TOTALS: Final = """\
>>> import numpy as np
>>> from streamwatch.core.estimators.measures.measures import Totals
>>> from streamwatch.core.estimators.measures import measures
>>> one, two = np.ones(1), np.ones((1, 2))
"""
BASELINES: Final[Mapping[str, str]] = {
    **{
        name: _seen(f"baseline_accuracy_ratio:{name}", by_hand, shown)
        for name, by_hand, shown in (
            ("majority", "11/20", "0.55"),
            ("majority_prequential", "9/19", "0.4737"),
            ("persistent", "14/19", "0.7368"),
            ("random", "(11*12 + 9*8)/20**2", "0.51"),
            ("uninformed", "1/2", "0.5"),
            ("transition", "14/19", "0.7368"),
            ("temporally_augmented", "11/19", "0.5789"),
        )
    },
    "persistent_at_prediction": f"""\
{_TOTALS}>>> sums = {{"label_at_prediction_repeats": 6 * one, "label_at_prediction_pairs": 8 * one}}
>>> late = Totals(10 * one, 7 * one, 5 * one, 9 * one, 10 * one, two, two, two, **sums)
>>> float(measures.p_persistent_at_prediction(late)[0])  # = 6/8
0.75
""",
    "temporal_correction": """\
>>> sums = {"corrected": 9 * one, "scored": 10 * one}
>>> scored = Totals(10 * one, 7 * one, 5 * one, 9 * one, 10 * one, two, two, two, **sums)
>>> float(measures.p_temporal_correction(scored)[0])  # = 9/10
0.9
""",
}
_SUMS: Final = """\
>>> from streamwatch.core.estimators.comparisons import measures
>>> losses = {"champion": 20 * one, "challenger": 12 * one}
>>> alone = {"n01": 14 * one, "n10": 6 * one, "variance": 20 * one}
>>> pairs = measures.Sums(weight=100 * one, n_eff=100 * one, **losses, **alone)
"""
COMPARISONS: Final[Mapping[str, str]] = {
    name: f"{before}>>> round(float(measures.{function}(pairs)[0]), 4)  # = {by_hand}\n{shown}\n"
    for name, before, function, by_hand, shown in (
        ("comparison_q", _SUMS, "q_statistic", "log(20/12)", "0.5108"),
        ("comparison_mcnemar", "", "mcnemar", "(14 - 6)**2/(14 + 6)", "3.2"),
        ("comparison_mcnemar_calibrated", "", "mcnemar_calibrated", "(14 - 6)**2/20", "3.2"),
        ("comparison_champion_error_ratio", "", "champion_error", "20/100", "0.2"),
        ("comparison_challenger_error_ratio", "", "challenger_error", "12/100", "0.12"),
        ("comparison_champion_right_alone", "", "champion_right_alone", "6", "6.0"),
        ("comparison_challenger_right_alone", "", "challenger_right_alone", "14", "14.0"),
    )
}
_DETECTED: Final = """\
>>> from streamwatch.core.estimators.detectors import KINDS
>>> from streamwatch.core.specs import MonitorsSpec
>>> every = tuple(kind.spec() for kind in KINDS)
>>> spec = MonitorsSpec((), every, (), max_models=1, max_classes=2, opponents=())
>>> losses = [1, 0, 0, 0, 0] * 200 + [1, 0] * 250  # an error of .2 becomes .5 after 1,000 outcomes
>>> raised = {alarm.detector: alarm for alarm in Evaluator(spec).update([0] * 1500, losses)}
"""
DETECTORS: Final[Mapping[str, str]] = {
    "page_hinkley": f"""\
{_DETECTED}>>> alarm = raised["page_hinkley"]
>>> alarm.threshold, round(alarm.before, 2), round(alarm.after, 1), 1000 < alarm.outcome < 1250
(40.0, 0.2, 0.5, True)
""",
    "adwin": """\
>>> alarm = raised["adwin"]
>>> round(alarm.before, 1), alarm.outcome % 32, 1000 < alarm.outcome < 1250  # it looks every 32 outcomes
(0.2, 0, True)
""",
    "ddm": """\
>>> alarm = raised["ddm"]
>>> round(alarm.threshold, 4)  # = 200/1000 + 3*sqrt(.2*.8/1000)
0.2379
>>> alarm.statistic > alarm.threshold, 1000 < alarm.outcome < 1250
(True, True)
""",
    "cusum": """\
>>> alarm = raised["cusum"]
>>> alarm.threshold, round(alarm.before, 2), 1000 < alarm.outcome < 1250
(50.0, 0.2, True)
""",
    "hddm_a": """\
>>> alarm = raised["hddm_a"]  # at 1041, the best beginning being the first 1,000 outcomes
>>> round(alarm.threshold, 6)  # = sqrt((1/1000 - 1/1041)*log(2/.001)/2)
0.012234
>>> round(alarm.after, 4)  # = 21/41
0.5122
""",
    "hddm_w": """\
>>> alarm = raised["hddm_w"]
>>> alarm.statistic > alarm.threshold, 1000 < alarm.outcome < 1500
(True, True)
""",
    "ewma": """\
>>> alarm = raised["ewma"]
>>> alarm.statistic > alarm.threshold, 1000 < alarm.outcome < 1500
(True, True)
""",
    "stepd": """\
>>> alarm = raised["stepd"]
>>> alarm.statistic > alarm.threshold, 1000 < alarm.outcome < 1250
(True, True)
""",
    "kswin": """\
>>> alarm = raised["kswin"]  # the last 100 outcomes beside the 400 before them
>>> alarm.outcome, round(alarm.before, 4), round(alarm.after, 4), alarm.n_eff
(1096, 0.2, 0.48, 500.0)
""",
}
DRIFT_WEIGHTED: Final[Mapping[str, str]] = {
    "drift_weighted": """\
>>> seen.values()["drift_weighted_accuracy_ratio"]  # no drift so far: every outcome weighs alike  # = 15/20
0.75
""",
}
_REVISED: Final = """\
>>> from streamwatch.core.estimators.registers.revisions import compared
>>> kept = {"weight": 100, "squares": 100, "first": 70, "gained": 12, "lost": 4, "revised": 20}
>>> said = compared(np.array(list(kept.values()), float))
"""
REVISIONS: Final[Mapping[str, str]] = {
    name: f"{before}>>> round(said.{attribute}, 4)  # = {by_hand}\n{shown}\n"
    for name, before, attribute, by_hand, shown in (
        ("first_prediction_accuracy_ratio", _REVISED, "first", "70/100", "0.7"),
        ("last_prediction_accuracy_ratio", "", "last", "(70 + 12 - 4)/100", "0.78"),
        ("revision_gain", "", "gain", "(12 - 4)/100", "0.08"),
        ("outcomes_revised_ratio", "", "revised", "20/100", "0.2"),
    )
}
EXAMPLES: Final[Mapping[str, Mapping[str, str]]] = {
    "mechanisms": MECHANISMS,
    "measures": MEASURES,
    "per_class": PER_CLASS,
    "bounds": BOUNDS,
    "baselines": BASELINES,
    "comparisons": COMPARISONS,
    "detectors": DETECTORS,
    "drift_weighted": DRIFT_WEIGHTED,
    "revisions": REVISIONS,
}
"""By kind and name, as `streamwatch catalogue` lists them."""
