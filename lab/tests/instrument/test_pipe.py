"""A reader that has enough ends the command quietly."""

from __future__ import annotations

import os
import subprocess
import sys

RUN = "import sys; from onym_lab.cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_reader_that_went_away_is_no_failure() -> None:
    """`onym-lab list | head -1`, with a reader that is gone before the first line."""
    away, here = os.pipe()
    os.close(away)
    with os.fdopen(here, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", RUN, "list"], stdout=out, stderr=subprocess.PIPE, timeout=120
        )
    assert (done.returncode, done.stderr) == (0, b"")
