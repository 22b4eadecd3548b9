"""Compiled reading of ordinary JSON records to rows; the others are decoded by `formats.json`.

Functions here accept a subset of JSON: numbers of moderate length, ids without escapes, each mapped field
once. Values outside it are *unusual* (`UNUSUAL`), and their records are *left* to the decoders of `formats`,
which read every record one by one. What the scanner accepts, it reads exactly as they do.

Functions that read text return the position after it. A content's number, its *leaf*, indexes the columns of
a `Trace`.
"""
