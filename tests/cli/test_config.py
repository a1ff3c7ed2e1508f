"""The configuration file: where it is looked for, and mistakes in it named by file and place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlingua.errors import DecodeError
from interlingua_cli.config import Config, config_path, data_folder, read_config


def test_the_variable_wins_over_the_folder_and_that_over_the_default() -> None:
    assert config_path({"INTERLINGUA_CONFIG": "/x/y.toml", "XDG_CONFIG_HOME": "/z"}) == Path("/x/y.toml")
    assert config_path({"XDG_CONFIG_HOME": "/z"}) == Path("/z/interlingua/config.toml")
    assert config_path({}) == Path("~/.config/interlingua/config.toml").expanduser()


def test_no_file_is_an_empty_configuration_unless_it_was_named(tmp_path: Path) -> None:
    assert read_config({"XDG_CONFIG_HOME": str(tmp_path)}) == Config()
    with pytest.raises(DecodeError, match="nowhere"):
        read_config({"INTERLINGUA_CONFIG": str(tmp_path / "nowhere.toml")})


def test_a_key_is_read_from_the_variable_it_is_in() -> None:
    config = Config(providers={"acme": {"api_key_env": "K", "base_url": "http://a", "options": {"x": 1}}, "b": {}})

    assert config.settings({"K": "k"}) == {
        "acme": {"api_key": "k", "base_url": "http://a", "options": {"x": 1}},
        "b": {},
    }
    assert "api_key" not in config.settings({})["acme"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[nonsense]", "at nonsense"),
        ("rows = 1", "at rows"),
        ("[presets]\nacme = 1", "at presets.acme"),
        ("[aliases]\nfast = 1", "at aliases.fast"),
        ("[providers.acme]\nurl = 'x'", "at providers.acme.url"),
        ("[providers.acme]\nbase_url = 1", "at providers.acme.base_url"),
        ("[providers.acme]\napi_key = 'sk'", "api_key_env"),
        ("[", "config.toml"),
    ],
)
def test_a_mistake_names_file_and_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DecodeError) as caught:
        read_config({"INTERLINGUA_CONFIG": str(path)})
    assert place in str(caught.value)
    assert str(path) in str(caught.value)


def test_tests_keep_off_the_folders_of_who_runs_them() -> None:
    for place in (data_folder(os.environ), config_path(os.environ)):
        assert not place.is_relative_to(Path.home())
