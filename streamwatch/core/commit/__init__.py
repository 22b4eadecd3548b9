"""Contents of a commit: checkpoint, journal, and the configuration of the estimators."""
