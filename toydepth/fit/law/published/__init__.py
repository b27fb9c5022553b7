"""Published procedures, repeated on a table, beside the exact minimum of their objectives."""
