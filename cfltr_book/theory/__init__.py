"""What the proofs of the chapters are checked with: exact laws by enumeration and by formula, and their bounds."""
