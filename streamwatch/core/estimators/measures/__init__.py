"""Functions of the agreement totals, and their lines of the catalogue."""
