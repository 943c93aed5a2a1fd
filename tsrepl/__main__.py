"""`python -m tsrepl` is the command `tsrepl`; Python looks for this module by its name."""

import sys

from tsrepl.cli import main

sys.exit(main())
