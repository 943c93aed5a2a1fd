"""Runs that go both ways: stepping, stopping, looking, and undoing.

| module | what is in it |
| --- | --- |
| `undo` | values that can be written to, kept so that they can be put back |
| `effects` | for each instruction: the registers it writes, and what it may change besides |
| `recording` | a run with a journal of what each instruction changed: forward, back, to any position |
| `author_names` | the author's names for values of an archive's generated code |
| `places` | lines, variables and modules of a program in terms of instructions and registers |
| `stops` | breakpoints, watchpoints, and how far a command goes |
| `debugger` | a debugged call: commands, the reason of each stop, what a frame shows |
"""
