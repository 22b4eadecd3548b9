"""What notifications ask of the estimators: names of alarms, how a model does now, and what changed."""
