"""Pipeline from merged records through join and estimators, and its checkpoints."""
