"""Guesses from sampled records where predictions and labels live; pure, whoever read the samples."""
