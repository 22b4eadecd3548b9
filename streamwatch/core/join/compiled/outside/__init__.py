"""What a compiled join has outside its table: which entries leave it, come back, and are guests for a batch.

The entries themselves lie in `cold`. A join whose table has no limit has none there, and pays nothing for it.
"""
