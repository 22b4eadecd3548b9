"""Contents of a commit: checkpoint, journal, and what the estimators were configured as."""
