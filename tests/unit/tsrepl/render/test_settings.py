"""The file of settings."""

from pathlib import Path

import platformdirs
import pytest

from tsrepl.render.settings import Settings, read_settings


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    return tmp_path / "config.toml"


def test_without_a_file(path: Path) -> None:
    assert not path.exists()
    assert read_settings() == Settings("emacs")


def test_vi(path: Path) -> None:
    path.write_text('editing_mode = "vi"')
    assert read_settings() == Settings("vi")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("editing_mode = ", "Invalid value"),
        ('editing_mode = "ed"', "emacs or vi, not 'ed'"),
        ('theme = "blue"', "dark, light or auto, not 'blue'"),
        ("colour = 1", "no setting 'colour'"),
    ],
)
def test_what_is_wrong_is_told(path: Path, text: str, told: str) -> None:
    path.write_text(text)
    assert told in read_settings().warning
    assert read_settings().editing_mode == "emacs"


def test_themes(path: Path) -> None:
    path.write_text('theme = "light"')
    assert read_settings().theme == "light"


def test_a_wrong_variable_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSREPL_THEME", "blue")
    assert read_settings().warning == "TSREPL_THEME is dark, light or auto, not 'blue'"
