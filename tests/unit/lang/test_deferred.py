"""Modules that are loaded late, or left out."""

import subprocess
import sys


def test_what_is_left_out_is_there_later() -> None:
    program = """if True:
        import sys
        from engine.lang.deferred import left_out
        with left_out("ssl"):
            import asyncio.base_events as users
        assert "ssl" not in sys.modules and users.ssl is None
        import ssl
        with left_out("ssl"):
            import ssl as again
        print(again is ssl)
    """
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"True\n"
