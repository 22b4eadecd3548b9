"""The functional core: no I/O, no clock, no logging.

Time enters as `Progress` events, in order, so a run can be replayed.
"""
