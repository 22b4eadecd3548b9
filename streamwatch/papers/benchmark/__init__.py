"""The published benchmark of drift detectors: metrics, streams, controls and detectors."""
