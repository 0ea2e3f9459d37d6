"""What the proofs and simulations of the chapters are checked with: exact laws by enumeration, bounds, regret."""
