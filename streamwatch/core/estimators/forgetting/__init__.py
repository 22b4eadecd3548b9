"""Forgetting mechanisms of the totals, and drift-weighted accuracy."""
