class StreamingQueryException(Exception): ...  # noqa: N818 - the name is Spark's
