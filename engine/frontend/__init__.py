"""From programs to graphs: TorchScript text, Python functions and modules, and traced calls.

In: a program.  Out: functions of a compilation unit, each with its graph.  From the bottom: `syntax` reads text into
trees; `diagnostics` has hints and cautions; `matching` fits calls to schemas, and `standard_library` is the part of the
torch namespace that is itself written in TorchScript; `sugared` are the values that expressions stand for, `names` is
where names are looked up; `emit` turns trees into nodes, and `lowering` brings these into the form that programs are
shown; `compilation` makes functions and classes of definitions.  `python` does so for Python programs, and `tracing`
records them instead.
"""
