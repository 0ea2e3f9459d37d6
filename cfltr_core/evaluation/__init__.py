"""What a click log says of a ranker: estimators, and expectations by enumeration."""
