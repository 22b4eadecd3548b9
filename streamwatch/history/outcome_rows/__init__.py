"""CSV files whose rows hold a prediction and its label, read in columns: no object per row.

What a row may be beyond the ordinary (a name not met before, an ISO time, a cell that is empty or not ASCII)
is read by the reader of single rows and inserted in order; where a file has quotes, or times that are not
believed, that reader takes over for the rest. The numbers are the same, to the last bit.
"""
