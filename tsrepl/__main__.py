"""`python -m tsrepl` is the command `tsrepl`."""

import sys

from tsrepl.cli import main

sys.exit(main())
