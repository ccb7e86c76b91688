"""A build from the source where something is missing: it ends at once, and says what to install."""

import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parents[1]


def install(path):
    """Installs the package with nothing but these programs, and nothing that could be downloaded."""
    nowhere = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(path / "site"), str(PACKAGE)],
        env={"PATH": str(path), "HOME": str(path), **nowhere},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def program(path, name, text):
    file = path / name
    file.write_text(f"#!/bin/sh\necho '{text}'\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("cargo", "reason"),
    [
        (None, "cargo is not in PATH"),
        ("cargo 1.63.0 (fd9c4297c 2022-07-01)", "cargo 1.63.0 (fd9c4297c 2022-07-01) is too old"),
        ("error: rustup could not choose a version", "rustup could not choose a version"),
        ("cargo 1.85.0 (d73d2caf9 2024-12-31)", "there is no C compiler"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_downloaded(tmp_path, cargo, reason):
    if cargo is not None:
        program(tmp_path, "cargo", cargo)
    ended = install(tmp_path)
    assert ended.returncode != 0
    assert reason in ended.stdout
    assert "Rust 1.85 or later" in ended.stdout and "https://rustup.rs" in ended.stdout
    assert "No matching distribution" not in ended.stdout


def test_with_all_that_is_needed_the_build_asks_for_maturin(tmp_path):
    program(tmp_path, "cargo", "cargo 1.85.0 (d73d2caf9 2024-12-31)")
    program(tmp_path, "cc", "a compiler")
    ended = install(tmp_path)
    # There is nowhere to get it from.
    assert "maturin" in ended.stdout and "cannot be built here" not in ended.stdout
