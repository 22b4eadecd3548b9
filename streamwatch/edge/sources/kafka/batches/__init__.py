"""From the bytes a broker sends to rows of records: batches, codecs, faults, older formats."""
