"""What a chapter calls to show and to claim: figures, recorded numbers, claims and sweeps."""
