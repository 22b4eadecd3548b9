"""The same core on Spark Structured Streaming, for who outgrows one process (the extra `spark`).

    Kafka ─→ source ─→ buckets of ids ─→ buckets of models ─→ results topic ─→ `streamwatch run`

Nothing else imports this room. What a bucket does is the core's (`core.buckets`); here is what keeps a
bucket's state between batches, cuts topics into batches of time, and writes results.
"""
