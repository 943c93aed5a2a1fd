"""From the graph that the emitter writes, with named variables and early exits, to the one that programs are shown."""
