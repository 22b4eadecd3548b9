"""Compiled reading of ordinary JSON records; what is out of the ordinary is left to `formats.json`.

Functions here accept less than JSON allows and never more: plain ASCII text without escapes, numbers of
moderate length, each mapped field once. Everything that they accept means the same to msgspec.
"""
