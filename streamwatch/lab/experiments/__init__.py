"""Experiments of the papers behind this project, with the daemon's own estimators: a file each."""
