"""`python -m onym_lab` is the command."""

import sys

from onym_lab.cli import main

sys.exit(main())
