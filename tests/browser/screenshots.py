"""Pictures of the status page over the running demo: `python -m tests.browser.screenshots deploy/pictures/`.

Starts `streamwatch demo` on a free port, waits until it has caught the drift, and takes the overview (light,
dark, phone) and one model (light, dark, phone).
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from PIL import Image
from playwright.async_api import Browser, expect

from tests.browser.chromium import DESKTOP, PHONE, chromium

DEADLINE_SECONDS = 240.0
AFTER_ALARM_SECONDS = 2.0
MODEL = "drifting-v2"
COLOURS = 128
PICTURES: dict[str, dict[str, Any]] = {
    "light": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "device_scale_factor": 2},
}


@contextmanager
def demo() -> Iterator[str]:
    """A demo of its own; where it serves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamwatch", "demo", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"}) as child:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            child.terminate()
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                child.kill()


async def until_caught(url: str) -> None:
    """Until the model that drifts is shown to be worse than no change."""
    async with asyncio.timeout(DEADLINE_SECONDS), aiohttp.ClientSession(url) as session:
        while True:
            try:
                async with session.get("/api/v1/overview") as answer:
                    seen = await answer.json()
                if seen["alarms"] and seen["models"][MODEL]["verdict"] == "worse":
                    return
            except (aiohttp.ClientConnectionError, KeyError):
                pass  # not there yet
            await asyncio.sleep(0.25)


async def picture(browser: Browser, url: str, file: Path, context: dict[str, Any], model: str = "") -> None:
    """One picture: a screenful, or on a phone the first one."""
    page = await (await browser.new_context(**context)).new_page()
    await page.goto(f"{url}/#/model/{model}" if model else url)
    await expect(page.get_by_role("img") if model else page.locator("#rows tr")).not_to_have_count(0)
    await expect(page.locator("#health dt" if not model else "#model td")).not_to_have_count(0)
    await page.wait_for_timeout(1_500)  # one more report, so that every part is drawn
    await page.screenshot(path=file)
    await page.context.close()
    with Image.open(file) as taken:  # of few colours: a third of the bytes
        taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


async def take(url: str, folder: Path) -> list[Path]:
    """All pictures of a running demo that has caught a drift."""
    wanted = {
        folder / f"{kind}-{name}.png": (context, model)
        for name, context in PICTURES.items()
        for kind, model in (("status", ""), ("model", MODEL))
    }
    async with chromium() as browser, asyncio.TaskGroup() as group:  # at once: the demo's world moves on
        for file, (context, model) in wanted.items():
            group.create_task(picture(browser, url, file, context, model))
    return list(wanted)


def main() -> None:
    """Into the folder named on the command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "deploy/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    with demo() as url:
        asyncio.run(until_caught(url))
        asyncio.run(asyncio.sleep(AFTER_ALARM_SECONDS))  # so that the charts show what came of it
        for file in asyncio.run(take(url, folder)):
            print(f"{file} ({file.stat().st_size / 1000:.0f} kB)")  # noqa: T201  # says what it did


if __name__ == "__main__":
    main()
