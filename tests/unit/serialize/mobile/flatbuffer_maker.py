"""Makes flatbuffers of the mobile format, right or wrong ones, from plain data.

In: `{"field": value}` for a table, a list for a vector, `("Kind", value)` for a union.  Out: the file's bytes.
"""

import struct

from engine.serialize.mobile.flatbuffer import NUMBERS
from engine.serialize.mobile.schema import FORMS, OPCODES


class Maker:
    """Writes each table behind the one that refers to it; a `Shared` part is written once."""

    def __init__(self):
        self.data = bytearray(b"\0\0\0\0PTMF")
        self.shared = {}

    def file(self, module):
        self.refer(0, self.table("Module", module))
        return bytes(self.data)

    def refer(self, place, target):
        struct.pack_into("<I", self.data, place, target - place)

    def align(self, size):
        self.data += bytes(-len(self.data) % size)

    def table(self, name, values):
        known = self.shared.get(id(values))
        if known is not None:
            return known[0]
        fields = FORMS.tables[name]
        count = max((field.number for field in fields.values()), default=-1) + 1
        self.align(8)
        start = len(self.data)
        table = start + -(-(4 + 2 * count) // 8) * 8
        self.data += bytes(table - start + 8 + 8 * count)
        struct.pack_into("<2H", self.data, start, 4 + 2 * count, 8 + 8 * count)
        struct.pack_into("<i", self.data, table, table - start)
        if isinstance(values, Shared):
            self.shared[id(values)] = (table, values)
        for key, value in values.items():
            number = fields[key].number
            place = table + 8 + 8 * number
            struct.pack_into("<H", self.data, start + 4 + 2 * number, place - table)
            if fields[key].kind in FORMS.unions:
                struct.pack_into("<H", self.data, start + 2 + 2 * number, place - 8 - table)
            self.field(fields[key].kind, place, value)
        return table

    def field(self, kind, place, value):
        if kind in NUMBERS:
            NUMBERS[kind].pack_into(self.data, place, value)
        elif kind in FORMS.unions:
            tag, held = value
            self.data[place - 8] = FORMS.unions[kind].index(tag) + 1
            self.refer(place, self.table(tag, held) if tag in FORMS.tables else self.struct(tag, held))
        elif kind.startswith("["):
            self.refer(place, self.vector(kind[1:-1], value))
        else:
            self.refer(place, self.text(value) if kind == "string" else self.table(kind, value))

    def struct(self, name, values):
        self.align(8)
        self.data += FORMS.structs[name].form.pack(*values)
        return len(self.data) - FORMS.structs[name].form.size

    def text(self, value):
        value = value.encode() if isinstance(value, str) else value
        self.align(4)
        start = len(self.data)
        self.data += struct.pack("<I", len(value)) + value + b"\0"
        return start

    def vector(self, kind, values):
        if kind == "ubyte":
            return self.text(values)
        form = NUMBERS.get(kind) or (FORMS.structs[kind].form if kind in FORMS.structs else struct.Struct("<I"))
        while len(self.data) % 8 != 4:  # so that the elements lie as numbers of 8 bytes want it
            self.data += b"\0"
        start = len(self.data)
        self.data += struct.pack("<I", len(values)) + bytes(form.size * len(values))
        for index, value in enumerate(values):
            place = start + 4 + index * form.size
            if kind in NUMBERS:
                form.pack_into(self.data, place, value)
            elif kind in FORMS.structs:
                form.pack_into(self.data, place, *value)
            else:
                self.refer(place, self.text(value) if kind == "string" else self.table(kind, value))
        return start


class Shared(dict):
    """A table that is written once, however often it is referred to."""


def program(values, *, state=None, **more):
    """A file of these values, of which number 0 is None; the last is the module, unless `state` says another."""
    ivalues = [{}, *({"val": value} for value in values)]
    module = {"bytecode_version": 9, "ivalues": ivalues, "state_obj": len(values) if state is None else state}
    return Maker().file(module | more)


def function(
    instructions, *, name="__torch__.M.forward", arguments=(("self", "__torch__.M"),), returns="Tensor", **more
):
    """A function of instructions `(opcode, x, n)`."""
    schema = {"arguments": [{"name": a, "type": t} for a, t in arguments], "returns": [{"name": "", "type": returns}]}
    numbers = [(OPCODES.index(opcode), n, x) for opcode, x, n in instructions]
    return ("Function", {"qn": name, "instructions": numbers, "schema": schema, **more})
