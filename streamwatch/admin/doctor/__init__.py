"""Diagnosis of a running daemon: `facts` that are collected, and `rules` that find problems in them."""
