"""Text and trees: what a program is before it has a meaning.  `parser.py` makes trees, `views.py` names their parts."""
