"""Refuses to be imported in a sub-interpreter: threads of the native module have only the main one.
It is the first module that the package imports."""

from importlib import import_module

for _name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
    try:
        _api = import_module(_name)
    except ImportError:
        continue
    if _api.get_current() != _api.get_main():
        raise ImportError(
            "redlatch cannot be imported in a sub-interpreter; "
            "for mod_wsgi, set WSGIApplicationGroup %{GLOBAL}"
        )
    break
