"""From a tape to the text or machine code of one target: one file per target."""
