"""What a chapter calls to show and to claim: the run, figures, recorded numbers, claims and their evidence."""
