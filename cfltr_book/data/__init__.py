"""Where data come from: generated corpora, digits, LETOR collections of the user's, the logs of Open Bandit."""
