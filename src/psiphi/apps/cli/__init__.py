"""The command line.

In: words. Out: text, files and an exit code. Read `command_table.py` first.

    command_table.py      The table of commands
    commands/             The commands, one file each
    expression_parser.py  `psiphi derive`
    main.py               The door
    model_advice.py       What would be slow, wrong or surprising about a robot
    robot_argument.py     Robots and scenes by the words a user types
    terminal_text.py      Words on the terminal
"""
