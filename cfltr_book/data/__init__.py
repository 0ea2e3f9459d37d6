"""Where query lists come from: generated corpora, digits, LETOR collections of the user's; and the public logs of Open Bandit."""
