"""`python -m psiphi.cli`."""

import sys

from psiphi.cli.door import main

if __name__ == "__main__":
    sys.exit(main())
