"""The field's benchmark of drift detectors: its metrics, streams and controls, and ours beside its peers."""
