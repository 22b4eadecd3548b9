"""Durable form of a compiled join: values of a few columns that commits write, and the restore from them."""
