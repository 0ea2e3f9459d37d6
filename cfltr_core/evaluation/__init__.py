"""What a click log says of a ranker: estimators, their intervals, decisions."""
