"""Anytime-valid verdicts: a model is better than an opponent, worse, or the question is open.

`state` defines the record of one model against one opponent, `detector` updates it at every outcome with the
`factors` of its lead, and `dispersion` measures how much more the lead varies than that of independent
outcomes. `opponents` defines the opponents' answers, `utility` the value of an answer. `judge` combines these
at an outcome, `deferred` buffers steps, `folds` joins the folds of a model, and `readout` computes what is
reported.
"""
