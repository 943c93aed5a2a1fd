"""The variables' grammar, the log's lines, the limits."""

from pathlib import Path

import pytest

from engine.ir import pass_log
from engine.ir.parser import parse_ir
from engine.ir.pass_log import Settings, parse_levels, parse_limits, pass_of, settings_of
from engine.lang.errors import CompileError
from engine.passes.pipeline import run_pass

TEXT = """graph(%x : Tensor):
  %2 : Tensor = aten::relu(%x)
  %3 : Tensor = aten::relu(%x)
  %4 : Tensor = aten::mul(%2, %3)
  return (%4)
"""


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(pass_log._CURRENT, "settings", Settings())
    return pass_log.current()


def test_levels() -> None:
    assert parse_levels("") == {}
    assert parse_levels("dce:>peephole:>>inline:>>>>cse") == {"dce": 0, "peephole": 1, "inline": 2, "cse": 2}
    assert parse_levels("dead_code_elimination.cpp:>torch/csrc/jit/passes/inliner.cpp") == {"dce": 0, "inline": 1}
    assert pass_of("constant_pooling.py") == "constant_pooling"


def test_limits() -> None:
    assert parse_limits("dce=10:cse=0") == {"dce": 10, "cse": 0}
    with pytest.raises(CompileError, match="'dce=many' limits no pass"):
        parse_limits("dce=many")


def test_the_environment() -> None:
    found = settings_of({"PYTORCH_JIT_LOG_LEVEL": ">dce", "PYTORCH_JIT_OPT_LIMIT": "cse=1"})
    assert (found.levels, found.limits, found.stream) == ({"dce": 1}, {"cse": 1}, "stderr")
    assert found.concern("cse") and found.concern("dce") and not found.concern("inline")


def test_a_level_shows_itself_and_those_below(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    def logged(level: str) -> str:
        settings.counts.clear()
        pass_log.set_logging_option(level)
        run_pass("cse", parse_ir(TEXT))
        return capsys.readouterr().err

    dump = "[DUMP cse:001] After cse:\n[DUMP cse:001] graph(%x : Tensor):\n"
    update = "[UPDATE cse:001] Replacing\n[UPDATE cse:001] %3 : Tensor = aten::relu(%x)\n"
    assert logged("") == logged("dce") == ""
    assert logged("cse").startswith(dump)
    assert logged(">cse").startswith(update)
    assert dump in logged(">cse")
    assert logged(">>cse").startswith("[DEBUG cse:000] Before cse:\n")
    assert update in logged(">>common_subexpression_elimination.cpp")
    assert pass_log.get_logging_option() == ">>cse"


def test_the_log_goes_where_it_is_told(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pass_log.set_logging_option("cse")
    pass_log.set_logging_stream("stdout")
    run_pass("cse", parse_ir(TEXT))
    shown = capsys.readouterr()
    assert shown.out.startswith("[DUMP cse:001]")
    assert shown.err == ""
    pass_log.set_logging_stream(str(tmp_path / "log.txt"))
    run_pass("cse", parse_ir(TEXT))
    assert "After cse" in (tmp_path / "log.txt").read_text()


def test_a_limit_holds_over_all_runs(settings: Settings) -> None:
    pass_log.set_limits("cse=1")
    first, second = parse_ir(TEXT), parse_ir(TEXT)
    assert run_pass("cse", first)
    assert not run_pass("eliminate_common_subexpression", second)
    assert str(second) == TEXT
    pass_log.set_limits("cse=1")
    assert run_pass("cse", second)
