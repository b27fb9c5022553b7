"""`python -m toydepth.cli`."""

import sys

from toydepth.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
