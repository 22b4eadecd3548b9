"""Verdicts that hold however often one looks: a model is better than an opponent, worse, or it is open.

`state` lays out the record of one model against one opponent, `detector` compares the two at every
outcome, by `factors` of its lead, `dispersion` measures how much wilder the lead is than independent
outcomes, `opponents` are whom a model is judged against, `utility` is what an answer is worth, `judge` joins
these at an outcome, whose steps may wait (`deferred`), `readout` says what was found.
"""
