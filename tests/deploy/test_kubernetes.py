"""The manifests: valid by the schemas of Kubernetes and the Prometheus Operator, and true to each other."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from streamwatch.admin.capacity import worst_case, worst_case_disk
from streamwatch.assembly import specs
from streamwatch.assembly.checks import disk_spec
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.specs import MonitorsSpec
from streamwatch.settings import Settings, load
from tests.deploy.operator_schemas import SCHEMAS
from tests.deploy.repository import DEPLOY, documents, version

pytestmark = pytest.mark.slow

FOLDER = DEPLOY / "kubernetes"
VERSION = kubernetes_validate.latest_version()
KUSTOMIZATION = documents(FOLDER / "kustomization.yaml")[0]
MANIFESTS = [manifest for name in KUSTOMIZATION["resources"] for manifest in documents(FOLDER / name)]
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def of_kind(kind: str) -> dict[str, Any]:
    return next(manifest for manifest in MANIFESTS if manifest["kind"] == kind)


SET = of_kind("StatefulSet")
POD = SET["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]


def test_a_standby_is_made_of_valid_manifests_by_the_same_settings(tmp_path: Path) -> None:
    folder = FOLDER / "standby"
    (kustomization,) = documents(folder / "kustomization.yaml")
    assert kustomization["resources"] == ["..", "poddisruptionbudget.yaml"]
    for manifest in documents(folder / "poddisruptionbudget.yaml"):
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    (patch,) = documents(folder / "statefulset.yaml")
    pod = patch["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["name"] == CONTAINER["name"]
    patched = {**SET, "spec": {**SET["spec"], **{k: v for k, v in patch["spec"].items() if k != "template"}}}
    kubernetes_validate.validate(patched, VERSION, strict=True)
    environment = {each["name"]: each["value"] for each in container["env"]}
    (tmp_path / "streamwatch.yaml").write_text(of_kind("ConfigMap")["data"]["streamwatch.yaml"], "utf-8")
    assert load(tmp_path / "streamwatch.yaml", environ=environment).standby.enabled


def size(quantity: str) -> int:
    return int(quantity[:-2]) * UNITS[quantity[-2:]]


def settings(folder: Path) -> Settings:
    """The settings of the ConfigMap."""
    (folder / "streamwatch.yaml").write_text(of_kind("ConfigMap")["data"]["streamwatch.yaml"], "utf-8")
    return load(folder / "streamwatch.yaml")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_kustomize_lists_every_manifest() -> None:
    assert sorted(KUSTOMIZATION["resources"]) == sorted(
        file.name for file in FOLDER.glob("*.yaml") if file.name != "kustomization.yaml"
    )
    assert KUSTOMIZATION["images"][0]["newTag"] == version()


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: f"{m['kind']}/{m['metadata']['name']}")
def test_manifests_are_valid(manifest: dict[str, Any]) -> None:
    if manifest["apiVersion"].startswith("monitoring.coreos.com/"):
        jsonschema.validate(manifest, SCHEMAS[manifest["kind"]])
    else:
        kubernetes_validate.validate(manifest, VERSION, strict=True)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("PodMonitor", {"spec": {"selector": {}, "podMetricsEndpoints": [{"prot": "http"}]}}),
        ("PodMonitor", {"spec": {"podMetricsEndpoints": [{"port": "http"}]}}),
        ("PrometheusRule", {"spec": {"groups": [{"name": "a", "rules": [{"alert": "A"}]}]}}),
        (
            "PrometheusRule",
            {"spec": {"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "1", "for": "5"}]}]}},
        ),
        ("PrometheusRule", {"spec": {"groups": [{"rules": []}]}}),
    ],
)
def test_the_operators_schemas_can_refuse(kind: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**of_kind(kind), **wrong}, SCHEMAS[kind])


@pytest.mark.parametrize("name", ["prometheusrule.yaml", "dashboards.yaml"])
def test_what_is_generated_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == generator().written()[name], (
        "run deploy/kubernetes/generate.py"
    )


def test_every_rule_and_every_dashboard_is_there() -> None:
    groups = [
        group
        for file in (DEPLOY / "prometheus" / "rules").glob("*.y*ml")
        for group in documents(file)[0]["groups"]
    ]
    assert groups
    assert sorted(g["name"] for g in of_kind("PrometheusRule")["spec"]["groups"]) == sorted(
        g["name"] for g in groups
    )
    shown = {k: json.loads(v) for m in MANIFESTS for k, v in m.get("data", {}).items() if k.endswith(".json")}
    files = list((DEPLOY / "grafana" / "dashboards").glob("*.json"))
    assert files, "no dashboards"
    assert shown == {file.name: json.loads(file.read_text("utf-8")) for file in files}


def test_it_is_one_pod_that_keeps_its_state() -> None:
    assert SET["spec"]["replicas"] == 1
    claim = SET["spec"]["volumeClaimTemplates"][0]
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == "/var/lib/streamwatch"


def test_every_mount_has_its_volume() -> None:
    volumes = {v["name"] for v in POD["volumes"]} | {
        claim["metadata"]["name"] for claim in SET["spec"]["volumeClaimTemplates"]
    }
    assert {mount["name"] for mount in CONTAINER["volumeMounts"]} == volumes


def test_the_pod_has_no_rights() -> None:
    assert POD["securityContext"]["runAsNonRoot"]
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["automountServiceAccountToken"] is False
    assert of_kind("ServiceAccount")["automountServiceAccountToken"] is False


def test_the_pods_user_is_the_images() -> None:
    user = POD["securityContext"]["runAsUser"]
    assert f"USER {user}:{POD['securityContext']['fsGroup']}" in (DEPLOY / "docker" / "Dockerfile").read_text(
        "utf-8"
    )
    assert CONTAINER["image"] == f"streamwatch:{version()}"


def test_probes_ask_what_the_daemon_answers() -> None:
    assert CONTAINER["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/readyz"
    startup = CONTAINER["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= 300


def test_everything_selects_the_pod_and_its_port() -> None:
    labels = SET["spec"]["template"]["metadata"]["labels"]
    (port,) = CONTAINER["ports"]
    monitor = of_kind("PodMonitor")["spec"]
    assert SET["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("Service")["spec"]["selector"] == labels
    assert of_kind("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    assert SET["spec"]["serviceName"] == of_kind("Service")["metadata"]["name"]
    assert monitor["selector"]["matchLabels"] == labels
    assert monitor["podMetricsEndpoints"][0]["port"] == port["name"]


def test_the_scrape_job_has_the_name_it_has_in_prometheus_yml() -> None:
    monitor = of_kind("PodMonitor")["spec"]
    job = SET["spec"]["template"]["metadata"]["labels"][monitor["jobLabel"]]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    assert job in [configured["job_name"] for configured in scraped]


def test_the_settings_are_read_and_fit_the_pod(tmp_path: Path) -> None:
    read = settings(tmp_path)
    assert int(read.http.listen.rpartition(":")[2]) == CONTAINER["ports"][0]["containerPort"]
    assert "/var/lib/streamwatch" in [str(parent) for parent in read.state.directory.parents]
    limits, disk = (specs.join_spec(read), specs.monitors_spec(read)), disk_spec(read)
    assert disk is not None
    most = sum(part.bytes for part in worst_case(*limits, disk))
    assert most < 0.9 * size(CONTAINER["resources"]["limits"]["memory"])
    (claim,) = SET["spec"]["volumeClaimTemplates"]
    room = size(claim["spec"]["resources"]["requests"]["storage"]) - read.state.min_free_megabytes * 1_000_000
    assert sum(part.bytes for part in worst_case_disk(*limits, disk)) < room


def test_the_estimators_are_those_compiled_in_the_image(tmp_path: Path) -> None:
    configured, default = layout_of(specs.monitors_spec(settings(tmp_path))), layout_of(MonitorsSpec())
    assert (configured.model, configured.ring) == (default.model, default.ring)
