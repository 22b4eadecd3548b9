"""The same core on Spark Structured Streaming, for streams that outgrow one process (the extra `spark`).

    Kafka ─→ source ─→ buckets of ids ─→ buckets of models ─→ results topic ─→ `streamwatch run`

Nothing else imports this package. Buckets themselves are in `core.buckets`; this package keeps their state
between batches, cuts topics into batches of time, and writes results.
"""
