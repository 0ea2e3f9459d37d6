"""Who clicks on what, and what is kept of it: users, logging policies, loggers and click logs."""
