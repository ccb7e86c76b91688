"""The build backend of a wheel: maturin's, once it is known that there is what the build needs.

Where no wheel fits the machine, pip builds one from the source, as from a clone. maturin alone would
download a Rust toolchain then, without asking. This ends instead, before anything is downloaded, and
says what to install. So `build-system.requires` is empty: the hooks here ask for maturin.
"""

import os
import re
import shutil
import subprocess
import sys

MATURIN = "maturin>=1.9,<2"
RUST = (1, 85)

NEEDED = f"""
No wheel of redlatch is for this machine, or none was to be used. To build one takes
  * Rust {RUST[0]}.{RUST[1]} or later, with cargo in PATH: https://rustup.rs (distributions may have an older one)
  * a C compiler: apt-get install gcc libc6-dev, dnf install gcc, or apk add gcc musl-dev
"""


def missing():
    """What the build needs and is not here, or None."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return "cargo is not in PATH"
    asked = subprocess.run([cargo, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = asked.stdout.decode(errors="replace").strip()
    numbers = re.match(r"cargo (\d+)\.(\d+)", text)
    if numbers is None:
        return f"`cargo --version` says {text!r}"
    if tuple(map(int, numbers.groups())) < RUST:
        return f"{text} is too old"
    if "CC" not in os.environ and shutil.which("cc") is None:
        return "there is no C compiler (cc) in PATH"
    return None


def get_requires_for_build_wheel(config_settings=None):
    what = missing()
    if what is not None:
        sys.exit(f"redlatch cannot be built here: {what}.\n{NEEDED}")
    return [MATURIN]


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel


# The other hooks are called when maturin is there, and are its own.


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    import maturin

    return maturin.prepare_metadata_for_build_wheel(directory, config_settings)


def prepare_metadata_for_build_editable(directory, config_settings=None):
    import maturin

    return maturin.prepare_metadata_for_build_editable(directory, config_settings)


def build_wheel(directory, config_settings=None, metadata_directory=None):
    import maturin

    return maturin.build_wheel(directory, config_settings, metadata_directory)


def build_editable(directory, config_settings=None, metadata_directory=None):
    import maturin

    return maturin.build_editable(directory, config_settings, metadata_directory)


def build_sdist(directory, config_settings=None):
    import maturin

    return maturin.build_sdist(directory, config_settings)
