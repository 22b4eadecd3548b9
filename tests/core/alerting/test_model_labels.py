"""Labels of models by pattern, in notifications, in the metric that others join, and in details."""

from __future__ import annotations

from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec, ModelLabels, ModelRule, TopicsOfRun
from streamwatch.core.join.models import ModelActivity
from tests.edge.receivers.notifications import NOW_MS, firing

LABELS = ModelLabels(
    [
        ModelRule("fraud-v9", {"tier": "shadow"}, severity="info"),
        ModelRule("fraud-*", {"team": "payments", "tier": "gold"}, "critical", "https://wiki.example/fraud"),
        ModelRule("*", {"env": "prod", "team": "platform"}),
    ]
)


def test_of_several_rules_the_first_that_gives_a_label_holds() -> None:
    shadow = LABELS.of("fraud-v9")
    assert shadow.labels == {"env": "prod", "team": "payments", "tier": "shadow"}
    assert (shadow.severity, shadow.runbook_url) == ("info", "https://wiki.example/fraud")
    assert LABELS.of("fraud-v1").severity == "critical"
    assert LABELS.of("loan") == ({"env": "prod", "team": "platform"}, None, None)
    assert LABELS.of("Fraud-v1").labels["team"] == "platform", "patterns distinguish upper and lower case"


def test_a_notification_carries_the_labels_and_the_runbook_of_its_model() -> None:
    stamped = LABELS.stamped(firing(model="fraud-v1"))
    assert stamped.labels == {"env": "prod", "team": "payments", "tier": "gold"}
    assert stamped.runbook_url == "https://wiki.example/fraud"
    assert ModelLabels().stamped(firing()) == firing()


def test_a_digest_of_many_models_carries_none_of_its_own() -> None:
    paced = Pacing(PacingSpec(0, 1), ["chat"], "state-1")
    for n in range(3):
        paced.take("chat", firing(f"f{n}", f"fraud-{n}"), NOW_MS)
    (digest,) = paced.release("chat", NOW_MS, ())
    assert LABELS.stamped(digest) == digest


def test_the_metric_has_every_label_of_any_rule_and_the_topics_of_the_model() -> None:
    models = {
        "fraud-v1": ModelActivity("fraud-v1", 0, 0, 0, topic="cards", label_topic="chargebacks"),
        "loan": ModelActivity("loan", 0, 0, 0),
    }
    family = LABELS.family(models, TopicsOfRun("predictions", ""))
    assert family.labels == ("env", "label_topic", "model", "severity", "team", "tier", "topic")
    assert [values for values, _ in family.samples] == [
        ("prod", "chargebacks", "fraud-v1", "critical", "payments", "gold", "cards"),
        ("prod", "", "loan", "", "platform", "", "predictions"),
    ]
    assert {value for _, value in family.samples} == {1.0}


def test_details_of_a_model_have_its_labels() -> None:
    details = LABELS.details({"fraud-v1": {"classes": ["a"]}, "loan": {}})
    assert details["fraud-v1"] == {
        "classes": ["a"],
        "labels": {"env": "prod", "team": "payments", "tier": "gold"},
        "runbook_url": "https://wiki.example/fraud",
    }
    assert ModelLabels().details({"m": {}}) == {"m": {}}


def test_the_severity_of_a_model_holds_where_no_rule_of_alarms_chooses_one() -> None:
    chosen = AlarmRule(model="fraud-v2", severity="error", severity_given=True)
    quick = AlarmRule(model="fraud-v3", cooldown_ms=1)
    spec = AlarmsSpec(rules=(chosen, quick), model_severities=(("fraud-*", "critical"), ("*", "info")))
    assert spec.rule("fraud-v2", "adwin").severity == "error"
    assert spec.rule("fraud-v3", "adwin").severity == "critical"
    assert spec.rule("fraud-v3", "adwin").cooldown_ms == 1
    assert spec.rule("loan", "adwin").severity == "info"
    assert AlarmsSpec().rule("loan", "adwin").severity == "warning"
