"""The daemon's join and estimators, partitioned into buckets of ids and buckets of models for any engine."""
