"""Everything that touches a socket, a file or a clock."""
