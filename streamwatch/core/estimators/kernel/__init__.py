"""Compiled kernel: the hot loop over outcomes of many models, with one record of state per model."""
