"""Comparison of two models on the same ids: pairs of outcomes, Q, McNemar, and a verdict.

Positive values favour the challenger, negative ones the champion.
"""
