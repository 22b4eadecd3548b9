"""Fetch requests to leaders, their answers, and turns of records handed out of them."""
