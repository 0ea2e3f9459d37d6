"""Whether a click log can be relied on: one report of its health."""
