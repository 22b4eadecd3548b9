"""Thresholds that keep a promised rate of false alarms, from a model's own history (`streamwatch tune`)."""
