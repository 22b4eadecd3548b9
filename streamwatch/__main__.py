"""`python -m streamwatch`, and the script that `spark-submit` is given."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # A script's own directory comes first: there `streamwatch.river` would be `river`.
    if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
        del sys.path[0]
    from streamwatch.cli import main

    main()
