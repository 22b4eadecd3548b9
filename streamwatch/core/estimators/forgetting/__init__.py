"""Mechanisms by which totals forget, and weights that depend on drifts."""
