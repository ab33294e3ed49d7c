"""`python -m weft`: the command line, where the command itself is not on the path."""

import sys

from weft.cli import main

sys.exit(main())
