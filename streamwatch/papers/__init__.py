"""The papers' experiments with the daemon's own estimators, and the streams they need; not in the wheel."""
