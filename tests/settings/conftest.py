"""Errors that settings lead to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamwatch.settings import SettingsError, load

MINIMAL = "kafka: {bootstrap_servers: 'localhost:9092'}\ntopics: {predictions: predictions, labels: labels}\n"


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Lines of the error that a file (after the three minimal lines), overrides and environment lead to."""
    monkeypatch.chdir(tmp_path)
    file = Path("streamwatch.yaml")

    def read(text: str = "", *overrides: str, environ: dict[str, str] | None = None) -> list[str]:
        file.write_text(MINIMAL + text)
        with pytest.raises(SettingsError) as caught:
            load(file, overrides, environ or {})
        return str(caught.value).splitlines()

    return read
