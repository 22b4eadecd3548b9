"""Anytime-valid verdicts: a model is better than an opponent, worse, or the question is open.

`state` defines the record of one model against one opponent, and measures how much more the lead varies than
that of independent outcomes. `detector` updates the record by the lead at every outcome, and defines the
utility of an answer; `costs` builds it from a cost table. `leads` defines the opponents' answers and buffers
steps, `judge` judges a model at an outcome, by all its folds if it predicts in folds, and `readout` computes
what is reported.
"""
