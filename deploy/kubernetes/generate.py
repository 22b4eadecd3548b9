"""Write prometheusrule.yaml and dashboards.yaml from the rules and dashboards beside this folder.

One source each: what Prometheus reads from a file elsewhere, it gets from the operator here.

    python deploy/kubernetes/generate.py
"""

# ruff: noqa: INP001  # a script, beside what it writes
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
RULES = FOLDER.parent / "prometheus" / "rules"
DASHBOARDS = FOLDER.parent / "grafana" / "dashboards"
HEAD = "# Written by generate.py from {source}: change that, then run it again.\n"


class _Block(yaml.SafeDumper):
    """Texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Block.add_representer(str, _text)


def prometheus_rule(rules: Path = RULES) -> dict[str, Any]:
    """All groups of all rule files, in the order of the files' names."""
    files = [yaml.safe_load(file.read_text("utf-8")) for file in sorted(rules.glob("*.y*ml"))]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "streamwatch", "labels": {"app.kubernetes.io/name": "streamwatch"}},
        "spec": {"groups": [group for file in files for group in (file or {}).get("groups", [])]},
    }


def dashboards(folder: Path = DASHBOARDS) -> list[dict[str, Any]]:
    """A ConfigMap per dashboard, labelled as Grafana's sidecar expects; dense, as 1 MiB is the limit."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"streamwatch-dashboard-{file.stem}",
                "labels": {"app.kubernetes.io/name": "streamwatch", "grafana_dashboard": "1"},
            },
            "data": {
                file.name: json.dumps(
                    json.loads(file.read_text("utf-8")), separators=(",", ":"), ensure_ascii=False
                )
            },
        }
        for file in sorted(folder.glob("*.json"))
    ]


def written() -> dict[str, str]:
    """File name → content."""
    made = {
        "prometheusrule.yaml": ("deploy/prometheus/rules", [prometheus_rule()]),
        "dashboards.yaml": ("deploy/grafana/dashboards", dashboards()),
    }
    return {
        name: HEAD.format(source=source)
        + yaml.dump_all(
            documents, Dumper=_Block, sort_keys=False, allow_unicode=True, width=100_000, explicit_start=True
        )
        for name, (source, documents) in made.items()
    }


if __name__ == "__main__":
    for name, content in written().items():
        (FOLDER / name).write_text(content, "utf-8")
        sys.stdout.write(f"{FOLDER / name}\n")
