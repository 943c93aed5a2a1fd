"""Text and trees: programs before names are looked up.  `parser.py` makes trees, `views.py` names their parts."""
