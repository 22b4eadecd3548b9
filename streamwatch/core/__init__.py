"""The functional core: no I/O, no clock, no logging. Time enters as `Progress`, in order, so a run can be replayed."""
