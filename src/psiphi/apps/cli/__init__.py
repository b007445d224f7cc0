"""The command line.

In: arguments. Out: text, files and an exit code. Read `command_table.py` first.

    command_table.py      The table of commands
    main.py               Entry point: argument parser, error messages, exit codes
    commands/             The commands, one file each
    ground_arguments.py   --ground, its friction, and the feet of a robot
    robot_argument.py     Loads the robot or scene that an argument names
    expression_parser.py  Parses operator expressions for `psiphi derive`
    model_advice.py       What may be slow, wrong or surprising about a robot
    solver_bar.py         A progress bar for iterations
    terminal_text.py      Escaping, wrapping and suggestions for terminal output
"""
