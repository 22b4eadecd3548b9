"""Detectors scored where changes are known."""
