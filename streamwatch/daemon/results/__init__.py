"""The results topic of a distributed run, taken in as whole batches."""
