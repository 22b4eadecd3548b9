"""Reading of CSV and JSON lines with a prediction and its label each, in columns, without an object per row.

Rows that are not ordinary (a name not met before, an ISO time, a cell that is empty or not ASCII) are read by
the reader of single rows and inserted in order. From the first quote, or the first time that is not believed,
that reader reads the rest of the file. Results are the same, to the last bit.
"""
