"""Experiments of the papers with the daemon's estimators, and their streams; not in the wheel."""
