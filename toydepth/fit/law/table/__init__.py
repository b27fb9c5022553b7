"""From a file to the rows that enter a fit, and why the others do not."""
