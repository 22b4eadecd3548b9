"""Tuning: thresholds of detectors that keep a promised rate of false alarms."""
