"""The daemon's join and estimators cut into buckets of ids and buckets of models, for any engine."""
