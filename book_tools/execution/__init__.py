"""Executing the chapters: what is run, what a run leaves, and whether it is still that of the sources."""
