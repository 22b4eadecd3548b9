"""Detectors scored where changes are known (`streamwatch lab detectors`)."""
