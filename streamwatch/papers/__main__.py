"""`python -m streamwatch.papers`."""

from __future__ import annotations

from streamwatch.papers.commands import app

if __name__ == "__main__":
    app(prog_name="python -m streamwatch.papers")
