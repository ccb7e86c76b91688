"""Real servers, on free ports of 127.0.0.1; a test ends those that it began."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

import redlatch


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition, limit: float = 30.0) -> None:
    """Waits for a condition; the limit is for machines that are slow."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


class Server:
    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program, "no redis-server here (apt-get install redis-server)"
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        log = ["--logfile", str(folder / f"{self.port}.log"), "--dir", str(folder)]
        self.process = subprocess.Popen(command + log)
        until(self.answers)

    def answers(self) -> bool:
        try:
            return self.ask("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def ask(self, *words: str) -> bytes:
        text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(text.encode())
            return connection.recv(65536)

    def keys(self) -> bytes:
        return self.ask("KEYS", "*")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    started: list[Server] = []
    try:
        for _ in range(3):
            started.append(Server(tmp_path))
        yield started
    finally:
        for server in started:
            server.process.kill()
            server.process.wait()


@pytest.fixture
def urls(servers: list[Server]) -> list[str]:
    return [server.url for server in servers]


@pytest.fixture
def client(urls: list[str]) -> redlatch.Client:
    return redlatch.Client(urls, restart_guard=False)


class Program:
    """A program of Python, which is told by lines what to do next."""

    def __init__(self, text: str, *arguments: str) -> None:
        # Python 3.12 warns of every fork of a process with threads.
        quiet = ["-W", "ignore::DeprecationWarning"]
        command = [sys.executable, "-u", *quiet, "-c", text, *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        """Its code, and what it has written to stderr."""
        errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, errors


@pytest.fixture
def program() -> Iterator[type[Program]]:
    started: list[Program] = []

    def start(*arguments):
        started.append(Program(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
