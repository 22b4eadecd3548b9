"""Something to watch with nothing installed beside it: a broker, simulated models, a narrator."""
