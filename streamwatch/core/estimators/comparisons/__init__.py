"""Two models on the same ids: pairs of outcomes, Q, McNemar, and the verdict on the challenger.

Everything positive speaks for the challenger, everything negative for the champion.
"""
