"""What a run has to show."""
