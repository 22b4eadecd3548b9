"""Decoders of records: `core.ports.Decoder`s that make predictions and labels of values, keys and headers."""
