"""What a store has of a compiled join: values of a few columns that each commit writes, and the way back."""
