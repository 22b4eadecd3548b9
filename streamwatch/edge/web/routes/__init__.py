"""Faces of a report, one file each: Prometheus text, JSON of several kinds, a page for people.

Every exporter has the same shape: the `routes` it answers, the `query` parameters it understands, its own
`headers`, whether it is `public`, `media_type` (what the asker gets) and `render` (report → bytes, or None
where there is no such thing).
"""
