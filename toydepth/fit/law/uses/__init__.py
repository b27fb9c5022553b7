"""What a law is good for: the best shape, the best use of a budget, planned runs."""
