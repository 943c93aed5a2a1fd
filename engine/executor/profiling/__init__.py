"""Learning from runs: what values are (`profiles`, `record`), guards for that, bailouts where these fail."""
