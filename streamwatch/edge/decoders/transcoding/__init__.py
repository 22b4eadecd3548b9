"""Compiled conversion of Avro and Protocol Buffers to JSON text of the parts that a mapping reads.

Functions here accept a subset of what the formats allow. Values outside it (wanted text that needs escapes, a
field that occurs twice) are *unusual* and left to the readers in `schemas`, which read every value. For the
parts that the mapping reads, both give equal JSON.
"""
