"""Estimators of every model: forgetting mechanisms, measures, detectors, verdicts and the compiled loop."""
