"""The long-running process: a loop that reads and evaluates, what it says about itself, when it stops."""

from __future__ import annotations

from streamwatch.daemon.commits import CommitSpec
from streamwatch.daemon.daemon import Beside, Daemon
from streamwatch.daemon.intake import Intake, Topic
from streamwatch.daemon.places import POSITIONS, Places, places
from streamwatch.daemon.reading import ReadingSpec
from streamwatch.daemon.state import State
from streamwatch.daemon.vitals import Vitals

__all__ = [
    "POSITIONS",
    "Beside",
    "CommitSpec",
    "Daemon",
    "Intake",
    "Places",
    "ReadingSpec",
    "State",
    "Topic",
    "Vitals",
    "places",
]
