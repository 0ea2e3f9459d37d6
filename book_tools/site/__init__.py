"""The site: pages laid out from a finished run, built strictly, looked at, and shown."""
