"""Measures, baselines and bounds as functions of the agreement totals, with their catalogue entries."""
