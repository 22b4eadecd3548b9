"""The long-running process: a loop that reads and evaluates, what it says about itself, when it stops."""

from __future__ import annotations

from streamwatch.daemon.daemon import Daemon
from streamwatch.daemon.intake import Intake, Topic
from streamwatch.daemon.vitals import Vitals

__all__ = ["Daemon", "Intake", "Topic", "Vitals"]
