"""What a ranked list is, and how it is judged."""
