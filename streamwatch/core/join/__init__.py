"""Delayed-label join: predictions meet their labels by (id, model)."""
