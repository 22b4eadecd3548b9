"""Which of several replicas speaks: a rule of events and a clock, without either."""
