"""`python -m psiphi.bench`."""

import sys

from psiphi.bench import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
