"""The functional core: no I/O, no clock, no logging.

Time is that of the records in their merged order, so that a run can be replayed.
"""
