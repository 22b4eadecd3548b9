"""Compiled reading of Avro and Protocol Buffers: what a mapping wants of each value, as JSON text.

Functions here accept less than the formats allow and never more: a value that is out of the ordinary (text
with escapes or beyond ASCII where it is wanted, a field twice) is left to `schemas`, which reads every value.
What they accept becomes text that says the same to JSON's readers, as far as the mapping looks.
"""
