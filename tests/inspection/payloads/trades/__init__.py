"""Payloads of trades and products that the rules were not written on."""
