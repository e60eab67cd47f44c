"""``python -m hopedgn`` is the command ``hopedgn``."""

import sys

from hopedgn.cli import main

if __name__ == "__main__":
    sys.exit(main())
