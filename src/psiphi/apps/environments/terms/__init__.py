"""Terms of environments: observations, rewards, terminations.

In: functions of the state of one environment, or their names. Out: code for a kernel. Read
`term_state.py` first.

    term_state.py  What a term reads: the state of one environment, and random numbers
    term_words.py  Terms that have a name
    term_trace.py  Terms as code: functions that run once, on tape expressions
"""
