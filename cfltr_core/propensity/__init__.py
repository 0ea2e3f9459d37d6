"""Where propensities come from: interventions, and estimates of the examination curve from logs."""
