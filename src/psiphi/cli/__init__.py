"""The command line: `psiphi demo | view | info | simulate | study | derive | count | emit | bench`.

Comes in: words. Goes out: text, files, an exit code: 0 done, 2 refused (one sentence and a hint on stderr), 3 a motion that
diverged, 130 interrupted, 141 the reader of our output left. A command is a file here and a row of `COMMANDS`; nothing heavy is
imported before a command runs, so that `--help` answers at once. Read `commands.py` first (the table), then `door.py`.

    demo.py, view.py, info.py, simulate.py, study.py, derive.py, count.py, emit.py, bench.py    a command each
    robots_by_name.py, text.py, advice.py   robots by the words a user types; words on a terminal; what is odd about a robot
"""

from psiphi.cli.commands import COMMANDS, Command
from psiphi.cli.door import main, parser, version

__all__ = ["COMMANDS", "Command", "main", "parser", "version"]
