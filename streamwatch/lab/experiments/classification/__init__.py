"""Classifiers of the literature on the testbed: what is evaluated, not what evaluates."""
