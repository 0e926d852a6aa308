"""Environment variables in .conf files, by the rules of Pulsar's apply-config-from-env.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.cli.pulsar.apply_config import apply, main, main_with_prefix


def test_a_variable_of_a_key_s_name_replaces_its_value() -> None:
    lines, said = apply(["a=1", "b=2"], {"b": "3"})
    assert (lines, said) == (["a=1", "b=3"], ["Applying config b = 3"])


def test_a_variable_that_is_no_key_of_the_file_is_left_alone() -> None:
    assert apply(["a=1"], {"HOME": "/"}) == (["a=1"], [])


def test_a_prefixed_variable_replaces_a_value() -> None:
    lines, said = apply(["a=1"], {"PULSAR_PREFIX_a": "2"})
    assert (lines, said) == (["a=2"], ["Updating config a = 2"])


def test_a_prefixed_variable_adds_a_key() -> None:
    lines, said = apply(["a=1"], {"PULSAR_PREFIX_b": "2"})
    assert (lines, said) == (["a=1", "b=2"], ["Adding config b = 2"])


def test_a_prefixed_variable_wins_over_the_plain_one() -> None:
    assert apply(["a=1"], {"a": "2", "PULSAR_PREFIX_a": "3"})[0] == ["a=3"]


def test_a_key_that_is_commented_out_is_set_in_its_place() -> None:
    assert apply(["#a=", "# b = 1", "c=2"], {"a": "1", "PULSAR_PREFIX_b": "2"})[0] == ["a=1", "b=2", "c=2"]


def test_the_last_line_of_a_key_is_the_one_that_is_set() -> None:
    assert apply(["a=1", "#a=2"], {"a": "3"})[0] == ["a=1", "a=3"]


def test_a_comment_without_a_value_is_no_key() -> None:
    assert apply(["# text", ""], {"text": "1"})[0] == ["# text", ""]


def test_blanks_around_a_value_go() -> None:
    assert apply(["a=1"], {"a": " 2 "})[0] == ["a=2"]


def test_a_value_may_hold_equals_signs() -> None:
    assert apply(["a=b=c"], {"a": "d=e"})[0] == ["a=d=e"]


def test_a_bare_prefix_adds_nothing() -> None:
    assert apply(["a=1"], {"PULSAR_PREFIX_": "2"}) == (["a=1"], [])


@pytest.mark.parametrize("key", ["tokenSecretKey", "brokerClientAuthenticationParameters", "tlsKeyStorePassword"])
def test_a_secret_is_not_shown(key: str) -> None:
    lines, said = apply([], {f"PULSAR_PREFIX_{key}": "hush"})
    assert (lines, said) == ([f"{key}=hush"], [f"Adding config {key} = ********"])


def test_several_files_are_changed_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_PREFIX_added", "1")
    files = [tmp_path / "a.conf", tmp_path / "b.conf"]
    files[0].write_text("x=1")  # without a line feed at the end
    files[1].write_text("added=0\n" + "y=2\n" * 50)
    main([str(each) for each in files])
    assert files[0].read_text() == "x=1\nadded=1\n"
    assert files[1].read_text() == "added=1\n" + "y=2\n" * 50


def test_another_prefix_is_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_a", "2")
    (tmp_path / "a.conf").write_text("a=1\n")
    main(["--prefix", "MY_", str(tmp_path / "a.conf")])
    assert (tmp_path / "a.conf").read_text() == "a=2\n"


def test_the_other_program_takes_the_prefix_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_a", "2")
    (tmp_path / "a.conf").write_text("a=1\n")
    main_with_prefix(["MY_", str(tmp_path / "a.conf")])
    assert (tmp_path / "a.conf").read_text() == "a=2\n"


def test_bytes_that_are_no_utf_8_stay_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_PREFIX_b", "2")
    (tmp_path / "a.conf").write_bytes(b"a=\xff\n")
    main([str(tmp_path / "a.conf")])
    assert (tmp_path / "a.conf").read_bytes() == b"a=\xff\nb=2\n"


@pytest.mark.parametrize("arguments", [[], ["PREFIX_"]])
def test_a_command_line_without_a_file_ends_with_1(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        main_with_prefix(arguments)
    with pytest.raises(SystemExit, match="1"):
        main([])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "no.conf")])
    assert str(ended.value) == (
        f"apply-config-from-env.py: {tmp_path}/no.conf: No such file or directory; "
        "name a .conf file that this user can write"
    )
