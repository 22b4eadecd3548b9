"""Evaluation of recordings as the daemon would: replay of files and frames, reports, tuned thresholds."""
