"""The node that a call stub gives a result, as text of kernel IR over the words and helpers of `calls`.

In: nothing.  Out: `RECORDING`: what `autograd.specialised_recording` does, for any operator: the words of a history
(`histories`) say where edges lead and what is kept.  Where a call is not as they say it is left to Python.
"""

from __future__ import annotations

from typing import Final

RECORDING: Final = """
def is_source(process: i64, tensor: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    if slots[own[OUTPUTNR]] != own[ZERO]:
        return 0
    if slots[own[BASE]] == own[NONE]:
        return 1
    if slots[own[OWNSTORAGE]] == own[NONE]:
        return 0
    storage = view(i64[...], slots[own[OWNSTORAGE]])
    return select(slots[own[SEEN]] == storage[own[VERSION]], 1, 0)


def asks_for_grad(process: i64, value: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if value == own[NONE]:
        return 0
    if head[1] != own[LIST]:
        return select(head[own[GRAD]] != own[FALSE], 1, 0)
    length: i64 = PyList_Size(value)
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        slots = view(i64[...], item)
        if slots[own[GRAD]] != own[FALSE]:
            return 1
    return 0


def are_sources(process: i64, value: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if head[1] != own[LIST]:
        alone: i64 = is_source(process, value)
        return alone
    length: i64 = PyList_Size(value)
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        slots = view(i64[...], item)
        if slots[own[GRAD]] != own[FALSE]:
            from_here: i64 = is_source(process, item)
            if from_here == 0:
                return 0
    return 1


def history_of(descriptor: i64, args: i64, count: i64):
    it = view(i64[...], descriptor)
    if it[HISTORIES] == 0:
        return 0
    process = it[PROCESS]
    own = view(i64[...], process)
    hooks = view(i64[...], own[HOOKS])
    if bitor(hooks[own[REBASED]] != own[ZERO], hooks[own[GRADHOOK]] != hooks[own[RECORDEDHOOK]]):
        return 0
    given = view(i64[...], args)
    pattern: i64 = 0
    bit: i64 = 1
    for j in range(it[FLOWCOUNT]):
        place = it[FLOWS + j]
        if place < count:
            asked: i64 = asks_for_grad(process, given[place])
            pattern = pattern + asked * bit
        bit = bit * 2
    histories = view(i64[...], it[HISTORIES])
    found = histories[pattern]
    if found == 0:
        return 0
    history = view(i64[...], found)
    for j in range(history[EDGES]):
        from_here: i64 = are_sources(process, given[history[EDGE + j]])
        if from_here == 0:
            return 0
    return found


def history_wanted(descriptor: i64, args: i64, count: i64, may: i64, type: i64):
    it = view(i64[...], descriptor)
    own = view(i64[...], it[PROCESS])
    if may == 0:
        return 0
    recording: i64 = is_recording(it[PROCESS])
    if recording == 0:
        return 0
    if own[ISFLOAT + type] == 0:
        return -1
    found: i64 = history_of(descriptor, args, count)
    return select(found == 0, -1, found)


def form_of(process: i64, tensor: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    sizes: i64 = PyObject_GetAttr(slots[own[ARRAY]], own[SHAPENAME])
    if sizes == 0:
        return 0
    form: i64 = PyTuple_New(2)
    if form == 0:
        Py_DecRef(sizes)
        return 0
    fields = view(i64[...], slots[own[ARRAY]])
    dtype: i64 = retain(fields[DTYPE])
    PyTuple_SetItem(form, 0, sizes)
    PyTuple_SetItem(form, 1, dtype)
    return form


def saved(process: i64, tensor: i64):
    own = view(i64[...], process)
    made: i64 = PyType_GenericAlloc(own[SAVED], 0)
    if made == 0:
        return 0
    slots = view(i64[...], tensor)
    facts = view(i64[...], made)
    version: i64 = own[ZERO]
    if slots[own[OWNSTORAGE]] != own[NONE]:
        storage = view(i64[...], slots[own[OWNSTORAGE]])
        version = storage[own[VERSION]]
    held: i64 = retain(tensor)
    at: i64 = retain(version)
    output: i64 = retain(own[MINUSONE])
    facts[own[SAVEDHELD]] = held
    facts[own[SAVEDVERSION]] = at
    facts[own[SAVEDOUTPUT]] = output
    return made


def saved_result(process: i64, tensor: i64, place: i64):
    own = view(i64[...], process)
    made: i64 = PyType_GenericAlloc(own[SAVED], 0)
    if made == 0:
        return 0
    storage: i64 = PyType_GenericAlloc(own[STORAGE], 0)
    if storage == 0:
        Py_DecRef(made)
        return 0
    slots = view(i64[...], tensor)
    facts = view(i64[...], made)
    memory = view(i64[...], storage)
    owner: i64 = retain(slots[own[ARRAY]])
    version: i64 = retain(own[ZERO])
    memory[own[OWNER]] = owner
    memory[own[VERSION]] = version
    Py_DecRef(slots[own[OWNSTORAGE]])
    slots[own[OWNSTORAGE]] = storage
    held: i64 = retain(slots[own[ARRAY]])
    kept: i64 = retain(storage)
    at: i64 = retain(own[ZERO])
    output: i64 = PyLong_FromLongLong(place)
    facts[own[SAVEDHELD]] = held
    facts[own[SAVEDSTORAGE]] = kept
    facts[own[SAVEDVERSION]] = at
    facts[own[SAVEDOUTPUT]] = output
    return made


def listed(process: i64, value: i64):
    own = view(i64[...], process)
    head = view(i64[...], value)
    if bitor(head[1] == own[TUPLE], head[1] == own[SIZE]):
        all: i64 = PySequence_List(value)
        return all
    again: i64 = retain(value)
    if head[1] != own[INT]:
        return again
    made: i64 = PyList_New(1)
    if made == 0:
        Py_DecRef(again)
        return 0
    PyList_SetItem(made, 0, again)
    return made


def kept(process: i64, kind: i64, value: i64, place: i64):
    own = view(i64[...], process)
    if bitor(kind == KEPTGIVEN, value == own[NONE]):
        again: i64 = retain(value)
        return again
    if kind == KEPTLIST:
        list: i64 = listed(process, value)
        return list
    if kind == KEPTTENSOR:
        whole: i64 = saved(process, value)
        return whole
    if kind == KEPTRESULT:
        last: i64 = saved_result(process, value, -1 - place)
        return last
    form: i64 = form_of(process, value)
    return form


def kept_of_each(process: i64, kind: i64, value: i64):
    length: i64 = PyList_Size(value)
    made: i64 = PyList_New(length)
    if made == 0:
        return 0
    for i in range(length):
        item: i64 = PyList_GetItem(value, i)
        thing: i64 = kept(process, select(kind == KEPTTENSORS, KEPTTENSOR, KEPTFORM), item, 0)
        if thing == 0:
            Py_DecRef(made)
            return 0
        PyList_SetItem(made, i, thing)
    return made


def source_of(process: i64, tensor: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    if slots[own[GRAD]] == own[FALSE]:
        nothing: i64 = retain(own[NONE])
        return nothing
    source: i64 = retain(select(slots[own[GRADFN]] == own[NONE], tensor, slots[own[GRADFN]]))
    return source


def sources_of(process: i64, found: i64, args: i64):
    own = view(i64[...], process)
    history = view(i64[...], found)
    given = view(i64[...], args)
    total: i64 = 0
    for j in range(history[EDGES]):
        head = view(i64[...], given[history[EDGE + j]])
        length: i64 = 1
        if head[1] == own[LIST]:
            many: i64 = PyList_Size(given[history[EDGE + j]])
            length = many
        total = total + length
    made: i64 = PyTuple_New(total)
    if made == 0:
        return 0
    at: i64 = 0
    for j in range(history[EDGES]):
        value = given[history[EDGE + j]]
        head = view(i64[...], value)
        if head[1] == own[LIST]:
            size: i64 = PyList_Size(value)
            for i in range(size):
                item: i64 = PyList_GetItem(value, i)
                each: i64 = source_of(process, item)
                PyTuple_SetItem(made, at, each)
                at = at + 1
        else:
            source: i64 = source_of(process, value)
            PyTuple_SetItem(made, at, source)
            at = at + 1
    return made


def fill(process: i64, node: i64, found: i64, args: i64, count: i64, number: i64, results: InOut[i64[...]]):
    own = view(i64[...], process)
    history = view(i64[...], found)
    given = view(i64[...], args)
    facts = view(i64[...], node)
    for j in range(EMPTIES):
        nothing: i64 = retain(own[NONE])
        facts[own[EMPTY + j]] = nothing
    plan: i64 = retain(history[PLAN])
    facts[own[NODEPLAN]] = plan
    sequence: i64 = PyIter_Next(own[SEQUENCES])
    facts[own[NODESEQUENCE]] = sequence
    sources: i64 = sources_of(process, found, args)
    facts[own[NODESOURCES]] = sources
    rest: i64 = PyTuple_New(history[KEPTS])
    facts[own[NODEKEPT]] = rest
    outputs: i64 = PyTuple_New(number)
    facts[own[NODEOUTPUTS]] = outputs
    if bitor(bitor(sequence == 0, sources == 0), bitor(rest == 0, outputs == 0)):
        return 0
    for j in range(history[KEPTS]):
        place = history[KEPTPLACE + j]
        kind = history[KEPTKIND + j]
        value: i64 = history[KEPTOBJECT + j]
        if place < 0:
            value = results[-1 - place]
        if bitand(place >= 0, place < count):
            value = given[place]
        thing: i64 = 0
        if kind >= KEPTTENSORS:
            several: i64 = kept_of_each(process, kind, value)
            thing = several
        else:
            single: i64 = kept(process, kind, value, place)
            thing = single
        if thing == 0:
            return 0
        PyTuple_SetItem(rest, j, thing)
    for r in range(number):
        form: i64 = form_of(process, results[r])
        if form == 0:
            return 0
        PyTuple_SetItem(outputs, r, form)
    return 1


def attach(process: i64, tensor: i64, node: i64, place: i64):
    own = view(i64[...], process)
    slots = view(i64[...], tensor)
    fields = view(i64[...], slots[own[ARRAY]])
    type: i64 = type_of(process, fields[DTYPE])
    if own[ISFLOAT + type] == 0:
        return 0
    Py_DecRef(slots[own[GRADFN]])
    held: i64 = retain(node)
    slots[own[GRADFN]] = held
    Py_DecRef(slots[own[GRAD]])
    flag: i64 = retain(own[TRUE])
    slots[own[GRAD]] = flag
    if place != 0:
        number: i64 = PyLong_FromLongLong(place)
        Py_DecRef(slots[own[OUTPUTNR]])
        slots[own[OUTPUTNR]] = number
    return 0


def recorded(process: i64, found: i64, args: i64, count: i64, number: i64, results: InOut[i64[...]]):
    own = view(i64[...], process)
    if found == 0:
        return 1
    node: i64 = PyType_GenericAlloc(own[NODE], 0)
    done: i64 = 0
    if node != 0:
        filled: i64 = fill(process, node, found, args, count, number, results)
        done = filled
    if done == 0:
        PyErr_Clear()
        if node != 0:
            Py_DecRef(node)
        let_copies_go(number, results)
        return 0
    history = view(i64[...], found)
    bit: i64 = 1
    for r in range(number):
        if bitand(history[THROUGH], bit) != 0:
            attach(process, results[r], node, r)
        bit = bit * 2
    Py_DecRef(node)
    return 1


def finished(descriptor: i64, history: i64, args: i64, count: i64, number: i64, made: InOut[i64[...]], code: i64):
    it = view(i64[...], descriptor)
    if code != 0:
        let_copies_go(number, made)
        return 0
    for r in range(number):
        tensor: i64 = wrapped(descriptor, made[r])
        made[r] = tensor
        if tensor == 0:
            let_copies_go(number, made)
            return 0
    done: i64 = recorded(it[PROCESS], history, args, count, number, made)
    if done == 0:
        return 0
    if bitor(number == 1, it[GIVESFIRST] != 0):
        let_copies_go(number - 1, address(made[1]))
        return made[0]
    found: i64 = PyTuple_New(number)
    if found == 0:
        PyErr_Clear()
        let_copies_go(number, made)
        return 0
    for r in range(number):
        PyTuple_SetItem(found, r, made[r])
    return found

"""
