"""The command line on a terminal, which git's pager counts as."""

from pathlib import Path

import platformdirs
import pytest

from tsrepl.cli import main

MUTED = {"light": "38;2;89;99;110", "dark": "38;2;145;152;161"}


@pytest.mark.parametrize("theme", MUTED)
def test_answers_have_the_colours_of_the_settings(
    theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text(f'theme = "{theme}"')
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    for name in ("NO_COLOR", "TSREPL_THEME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"GIT_PAGER_IN_USE": "true", "TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    assert main(["-c", "torch.ones(2)"]) == 0
    assert MUTED[theme] in capsys.readouterr().out
