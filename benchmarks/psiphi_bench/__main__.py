"""`python -m psiphi_bench`."""

import sys

from psiphi.apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
