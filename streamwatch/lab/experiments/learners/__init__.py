"""Learners that are computed for whole streams at once: what is evaluated, not what evaluates."""
