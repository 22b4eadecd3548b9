"""What a daemon says of a log of five models, alone or from the results topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp

from tests.integration.one_log import all_evaluated
from tests.integration.running import child
from tests.spark.five_models import MODELS


async def reported_by(folder: Path, records: int, *settings: str) -> dict[str, Any]:
    """Everything a daemon says once it has taken in so many records, its alarms too."""
    folder.mkdir()  # noqa: ASYNC240  # at once
    with child(folder, *settings, f"state.directory={folder}/state") as daemon:
        found = await all_evaluated(daemon, records, MODELS)
        url = f"{daemon.url()}/api/v1/alarms?limit=1000"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            alarms = (await answer.json())["alarms"]
    found["alarms"] = sorted(alarms, key=lambda each: (each["model"], each["detector"], each["ordinal"]))
    return found
