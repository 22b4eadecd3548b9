"""Faces of a report, one file each: Prometheus text, JSON, a page for people.

Every exporter has the same shape: the `routes` it answers, its own `headers`, `media_type` (what the asker
gets) and `render` (report → bytes, or None where there is no such thing).
"""
