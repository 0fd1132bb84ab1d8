"""A person at the page: the real server as a process, a real Chromium, and an eye on everything that goes wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

CHROMIUM = "/usr/bin/chromium"
OPTIONS = ["--headless", "--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
COMMAND = [sys.executable, "-m", "plainmind"]
HAS_BROWSER = os.path.exists(CHROMIUM)
# Where all must be there, a test that cannot run has failed.
needs_browser = pytest.mark.skipif(
    not HAS_BROWSER and os.environ.get("CI") != "true",
    reason="there is no chromium: `make pytest` installs Debian's where apt-get can be used",
)
EXAMPLES = Path(__file__).parents[2] / "examples" / "workspace"


class PageServer:
    """`plainmind page` in a process of its own, over a copy of the example workspace."""

    def __init__(self, folder, *options, workspace=None):
        self.workspace = workspace or folder / "notes"
        if workspace is None:
            shutil.copytree(EXAMPLES, self.workspace)
        self.home = folder / "home"
        self._options = options
        self._env = {
            **os.environ,
            "PLAINMIND_HOME": str(self.home),
            "PLAINMIND_ENTRIES_DRIVER": "sqlite",  # another one takes seconds to load
            "TZ": "UTC",
        }
        self._process = None

    @property
    def pid(self):
        return self._process.pid

    def run(self, *words, timeout=60):
        """What another command of the program prints."""
        done = subprocess.run(
            [*COMMAND, "--workspace", str(self.workspace), *words],
            check=False,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self):
        command = [
            *COMMAND,
            "--workspace",
            str(self.workspace),
            "page",
            "--no-open",
            "--port",
            "0",
            *self._options,
        ]
        self._errors = (self.home.parent / "page.log").open("w+")
        self._process = subprocess.Popen(
            command, env=self._env, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        line = self._process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), (self.home.parent / "page.log").read_text()
        self.first_address = line.strip()
        self.origin = self.first_address.partition("/#")[0]
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def address(self):
        """A new address with a code that nobody has used."""
        return re.search(r"http://\S+", self.run("page", "--no-open"))[0]

    def path(self, name):
        return self.workspace / name

    def write(self, name, text):
        """A note as an editor would write it."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name):
        return self.path(name).read_text(encoding="utf-8")


class Person:
    """Opens tabs, and remembers each request and each error of them."""

    def __init__(self, browser, server):
        self.browser = browser
        self.server = server
        self.requests = []
        self.errors = []
        self._token = None
        self._contexts = []

    def _context(self, **options):
        wanted = {
            "viewport": {"width": 1280, "height": 800},
            "locale": "en-US",
            "reduced_motion": "reduce",
            **options,
        }
        context = self.browser.new_context(**wanted)
        context.set_default_timeout(15_000)
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("console", self._listen)
        self._contexts.append(context)
        return context

    def _listen(self, message):
        # A refused request is said on the console too, and is the server's to judge.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def open_by_code(self, address, **options):
        """A tab that comes by an address with a code."""
        page = self._context(**options).new_page()
        page.goto(address)
        return page

    def open(self, place="#/", **options):
        """A tab that is signed in already."""
        if self._token is None:
            page = self.open_by_code(self.server.first_address)
            page.wait_for_selector("nav.side")
            self._token = page.evaluate("sessionStorage.getItem('plainmind.token')")
        context = self._context(**options)
        signed_in = f"sessionStorage.setItem('plainmind.token', {self._token!r})"
        context.add_init_script(f"if (location.protocol === 'http:') {signed_in}")
        page = context.new_page()
        page.goto(f"{self.server.origin}/{place}")
        page.wait_for_selector("nav.side")
        return page

    def settle(self):
        """Close all tabs; whatever went wrong in one of them fails the test."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()
        abroad = [url for url in self.requests if urlsplit(url).hostname not in {"127.0.0.1", None}]
        self.requests.clear()
        errors, self.errors = self.errors, []
        assert not abroad, abroad
        assert not errors, errors


def wait_until(is_so, seconds=10.0):
    """Wait for something that is not on the screen."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def launch(playwright):
    """A browser that talks to nobody by itself, and a patience for machines that have other things to do."""
    expect.set_options(timeout=15_000)
    return playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)


@contextmanager
def serve_page(text):
    """A page of somebody else, at another port of this machine; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
