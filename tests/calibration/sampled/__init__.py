"""Sampled labels, simulated: whether intervals hold at every look, their widths, and labels that are lost."""
