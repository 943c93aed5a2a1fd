"""A graph as a list of instructions, and the operation of each: what the interpreter executes."""
