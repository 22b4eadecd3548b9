"""The hot loop: compiled estimators over arrays of records, many models in one batch."""
