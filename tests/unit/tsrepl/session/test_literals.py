"""Lists and dicts of many literals at the prompt, where literals are read as Python reads them."""

import time

import pytest

from tsrepl.session import Session
from tsrepl.session.replies import ValueReply

MANY = 300
LITERALS = {
    "int": [f"-{n}" for n in range(MANY)],
    "float": [f"{n}e-3" for n in range(MANY)],
    "bool": [("True", "False")[n % 2] for n in range(MANY)],
    "str": [f"""'w{n} " é'""" for n in range(MANY)],
    "escapes": [rf'"\x41\r\n{n}"' for n in range(MANY)],
    "hexadecimal": [f"0x{n:x}" for n in range(MANY)],
    "underscores": [f"1_{n:03}" for n in range(MANY)],
}


def value(session: Session, text: str) -> object:
    reply = session.execute(text)[-1]
    assert isinstance(reply, ValueReply), reply
    return reply.value


@pytest.mark.parametrize("literals", LITERALS.values(), ids=LITERALS)
@pytest.mark.parametrize("form", ["[{}]", "[{}][1:]", "{{{}}}"])
def test_they_are_what_they_are_in_python(form: str, literals: list[str]) -> None:
    items = [f"{n}: {each}" for n, each in enumerate(literals)] if "{{" in form else literals
    text, session = form.format(", ".join(items)), Session()
    session.execute(f"def f():\n    return {text}\n")
    assert [repr(value(session, each)) for each in (text, "f()")] == [repr(eval(text))] * 2


def test_tens_of_thousands_take_no_time() -> None:
    text = f"[{', '.join(map(str, range(50_000)))}]"
    session = Session()
    session.execute("0")
    begin = time.process_time()
    session.execute(f"b = {text}\ndef f():\n    return {text}\n")
    assert value(session, "len(b) + len(f())") == 100_000
    assert time.process_time() - begin < 2.5  # a word each takes six seconds
