"""`python -m streamwatch`."""

from __future__ import annotations

from streamwatch.cli import main

if __name__ == "__main__":
    main()
