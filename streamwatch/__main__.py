"""Entry point of `python -m streamwatch`, and script for `spark-submit`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # As a script, its directory is first in sys.path, and `import river` would find `streamwatch/river.py`.
    if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
        del sys.path[0]
    from streamwatch.cli import main

    main()
