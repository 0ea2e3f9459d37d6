"""Where query lists come from: generated corpora, digits, and LETOR collections of the user's."""
