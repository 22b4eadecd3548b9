"""The dashboards' JSON, from their descriptions.

python -m deploy.grafana.generate             write it
python -m deploy.grafana.generate --check     say which file is not what its description makes
"""
# ruff: noqa: INP001  # run from the root, part of no package

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.grafana.model import MODEL_DASHBOARD
from deploy.grafana.models import MODELS
from deploy.grafana.panels import Dashboard
from deploy.grafana.rendering import dashboard_json

FOLDER = Path(__file__).parent / "dashboards"
DASHBOARDS = {"models.json": MODELS, "model.json": MODEL_DASHBOARD}


def text_of(dashboard: Dashboard) -> str:
    """The file as it is committed."""
    return json.dumps(dashboard_json(dashboard), indent=2, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write or check every file; 1 if one differs."""
    stale = [
        name
        for name, dashboard in DASHBOARDS.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != text_of(dashboard)
    ]
    if "--check" in arguments:
        sys.stdout.writelines(f"{name} is not what its description makes\n" for name in stale)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(text_of(DASHBOARDS[name]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
