"""Tools for operators: checks, capacity, the doctor, and commands on state directories."""
