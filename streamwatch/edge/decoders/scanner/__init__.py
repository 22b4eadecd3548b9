"""Compiled reading of ordinary JSON records; what is out of the ordinary is left to `formats.json`.

Functions here accept less than JSON allows and never more: numbers of moderate length, ids without escapes,
each mapped field once. Everything that they accept means the same to msgspec.
"""
