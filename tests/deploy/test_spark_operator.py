"""The manifests of the job on Spark: valid by the operator's schema, true to image, settings and command."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
from typer.main import get_command

from streamwatch.admin.capacity import worst_case
from streamwatch.assembly import specs
from streamwatch.assembly.job_settings import checkpoint_of
from streamwatch.cli import app
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.specs import MonitorsSpec
from streamwatch.settings import Settings, load
from tests.deploy.repository import DEPLOY, ROOT, documents, version

pytestmark = pytest.mark.slow

FOLDER = DEPLOY / "spark"
SCHEMA = json.loads(Path(__file__).with_name("spark_application.json").read_text("utf-8"))
(JOB,) = documents(FOLDER / "sparkapplication.yaml")
SPEC = JOB["spec"]
DRIVER, EXECUTOR = SPEC["driver"], SPEC["executor"]
(CLAIM,) = documents(FOLDER / "checkpoint.yaml")
(CONFIG,) = documents(FOLDER / "configmap.yaml")
(DAEMON,) = documents(FOLDER / "daemon.yaml")
RIGHTS = documents(FOLDER / "rbac.yaml")
(KUSTOMIZATION,) = documents(FOLDER / "kustomization.yaml")
DOCKERFILE = (DEPLOY / "docker" / "spark.Dockerfile").read_text("utf-8")
LATEST = kubernetes_validate.latest_version()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of the ConfigMap."""
    (tmp_path / "streamwatch.yaml").write_text(CONFIG["data"]["streamwatch.yaml"], "utf-8")
    return load(tmp_path / "streamwatch.yaml")


def mounted(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Volumes of a pod by where they are mounted."""
    volumes = {volume["name"]: volume for volume in SPEC["volumes"]}
    return {mount["mountPath"]: volumes[mount["name"]] for mount in pod["volumeMounts"]}


def gibibytes(quantity: str) -> int:
    assert quantity[-1] == "g"
    return int(quantity[:-1]) << 30


def altered(**changes: Any) -> dict[str, Any]:
    return {**JOB, "spec": {**SPEC, **changes}}


def test_the_job_is_valid_by_the_operators_schema() -> None:
    jsonschema.validate(JOB, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {**JOB, "apiVersion": "sparkoperator.k8s.io/v1beta1"},
        {**JOB, "spec": {key: value for key, value in SPEC.items() if key != "sparkVersion"}},
        altered(type="python"),
        altered(restartPolicy={"type": "Sometimes"}),
        altered(restartPolicy={"type": "Always", "onFailureRetryInterval": 0}),
        altered(executor={**EXECUTOR, "instances": "4"}),
        altered(executor={**EXECUTOR, "replicas": 4}),
        altered(driver={**DRIVER, "memory": 2}),
        altered(sparkConf={"spark.ui.enabled": False}),
        altered(volumes=[{"name": "checkpoint", "persistentVolumeClaim": {}}]),
    ],
)
def test_the_operators_schema_can_refuse(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


@pytest.mark.parametrize("manifest", [CLAIM, CONFIG, *RIGHTS], ids=lambda m: m["kind"])
def test_what_is_beside_it_is_valid_by_kubernetes_schemas(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, LATEST, strict=True)


def test_kustomize_lists_every_manifest() -> None:
    patches = [patch["path"] for patch in KUSTOMIZATION["patches"]]
    files = [name for name in KUSTOMIZATION["resources"] if name.endswith(".yaml")]
    assert sorted([*patches, *files, "kustomization.yaml"]) == sorted(f.name for f in FOLDER.glob("*.yaml"))
    assert "../kubernetes" in KUSTOMIZATION["resources"]


@pytest.mark.parametrize(("patch", "file"), [(CONFIG, "configmap.yaml"), (DAEMON, "statefulset.yaml")])
def test_what_is_patched_is_there_without_spark(patch: dict[str, Any], file: str) -> None:
    (patched,) = documents(DEPLOY / "kubernetes" / file)
    assert (patch["kind"], patch["metadata"]["name"]) == (patched["kind"], patched["metadata"]["name"])
    if patch is DAEMON:
        (container,) = patched["spec"]["template"]["spec"]["containers"]
        (changed,) = patch["spec"]["template"]["spec"]["containers"]
        assert changed == {"name": container["name"], "args": ["run", "--set", "source=results"]}


def test_neither_service_nor_podmonitor_of_the_daemon_selects_the_pods_of_the_job() -> None:
    (service,) = documents(DEPLOY / "kubernetes" / "service.yaml")
    (monitor,) = documents(DEPLOY / "kubernetes" / "podmonitor.yaml")
    for selected in (service["spec"]["selector"], monitor["spec"]["selector"]["matchLabels"]):
        assert not selected.items() <= JOB["metadata"]["labels"].items()


def test_versions_are_those_of_the_project_and_of_its_lock_file() -> None:
    locked = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
    (spark,) = [package["version"] for package in locked if package["name"] == "pyspark"]
    assert SPEC["sparkVersion"] == spark
    assert f"ARG SPARK_VERSION={spark}\n" in DOCKERFILE
    assert SPEC["image"] == f"streamwatch-spark:{version()}"
    assert f"-t {SPEC['image']} ." in DOCKERFILE


def test_the_image_is_made_like_the_daemons() -> None:
    daemon = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
    for shown in (
        r"^FROM (python:\S+)",
        r"^ARG (UV_VERSION=.*)$",
        r"^USER (.*)$",
        r"(UV_PROJECT_ENVIRONMENT=\S+)",
    ):
        (one,) = set(re.findall(shown, daemon, re.MULTILINE))
        assert set(re.findall(shown, DOCKERFILE, re.MULTILINE)) == {one}
    assert DOCKERFILE.count("uv sync --frozen --no-cache --no-default-groups --extra spark") == 2


def test_the_job_starts_what_is_in_the_image_as_its_user() -> None:
    environment = SPEC["sparkConf"]["spark.pyspark.python"].removesuffix("/bin/python")
    assert f"UV_PROJECT_ENVIRONMENT={environment} " in DOCKERFILE
    packages = f"{environment}/lib/python3.11/site-packages"
    assert f"SPARK_HOME={packages}/pyspark " in DOCKERFILE
    assert SPEC["mainApplicationFile"] == f"local://{packages}/streamwatch/__main__.py"
    assert (ROOT / "streamwatch" / "__main__.py").is_file()
    for pod in (DRIVER, EXECUTOR):
        user = pod["podSecurityContext"]
        assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in DOCKERFILE
        assert user["runAsNonRoot"]
        assert user["fsGroup"] == user["runAsGroup"]
        assert pod["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_command_understands_its_arguments_and_finds_its_file() -> None:
    name, *arguments = SPEC["arguments"]
    command: Any = get_command(app)
    given = command.commands[name].make_context(name, list(arguments)).params
    assert given["master"] is None  # spark-submit says it
    config = mounted(DRIVER)[str(given["config"].parent)]["configMap"]["name"]
    assert config == CONFIG["metadata"]["name"]
    assert given["config"].name in CONFIG["data"]


def test_the_checkpoint_is_on_a_volume_that_all_pods_write_to(settings: Settings) -> None:
    checkpoints = Path(checkpoint_of(settings).removeprefix("file://"))
    for pod in (DRIVER, EXECUTOR):
        (volume,) = [v for path, v in mounted(pod).items() if Path(path) in checkpoints.parents]
        assert volume["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]
        (mount,) = [m for m in pod["volumeMounts"] if m["name"] == volume["name"]]
        assert not mount.get("readOnly")
    assert CLAIM["spec"]["accessModes"] == ["ReadWriteMany"]


def test_a_job_without_end_is_started_after_every_end() -> None:
    policy = SPEC["restartPolicy"]
    assert "--available-now" not in SPEC["arguments"]
    assert policy["type"] == "Always"
    assert min(policy["onFailureRetryInterval"], policy["onSubmissionFailureRetryInterval"]) >= 10


def test_every_core_of_the_executors_has_a_bucket_and_the_manifest_alone_says_how_many(
    settings: Settings,
) -> None:
    assert EXECUTOR["instances"] * EXECUTOR["cores"] <= settings.spark.id_buckets
    assert not [key for key in settings.spark.configuration if re.search("memory|cores|instances", key)]


def test_buckets_fit_the_memory_of_the_executors_though_every_worker_process_keeps_its_own(
    settings: Settings,
) -> None:
    most = sum(part.bytes for part in worst_case(specs.join_spec(settings), specs.monitors_spec(settings)))
    room = EXECUTOR["instances"] * gibibytes(EXECUTOR["memoryOverhead"])
    assert EXECUTOR["cores"] * most < 0.9 * room


def test_the_driver_may_start_executors_and_they_may_nothing() -> None:
    accounts = {m["metadata"]["name"]: m for m in RIGHTS if m["kind"] == "ServiceAccount"}
    assert accounts.keys() == {DRIVER["serviceAccount"], EXECUTOR["serviceAccount"]}
    assert accounts[EXECUTOR["serviceAccount"]]["automountServiceAccountToken"] is False
    (role,) = [m for m in RIGHTS if m["kind"] == "Role"]
    (binding,) = [m for m in RIGHTS if m["kind"] == "RoleBinding"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [DRIVER["serviceAccount"]]
    assert {"create", "delete"} <= set(role["rules"][0]["verbs"])


def test_the_estimators_are_those_compiled_in_the_image(settings: Settings) -> None:
    configured, default = layout_of(specs.monitors_spec(settings)), layout_of(MonitorsSpec())
    assert (configured.model, configured.ring) == (default.model, default.ring)
