"""Looking into model files without running them: survey, check, compare, extract, fix."""
