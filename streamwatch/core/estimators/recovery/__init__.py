"""Recovery after a drift: how far the error rises, and how many outcomes it takes to come back.

`state` lays out the record of one model, `observe` follows its faded error after every outcome, `readout`
reads depths and lengths from records.
"""
