"""Bounds on the rank, the learners that minimise them, and the theory of their training."""
