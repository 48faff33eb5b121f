# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, spoken to over a pipe: nothing but the browser has to be installed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds for anything that should happen at once


def find():
    """The browser's path, or None."""
    chosen = os.environ.get("CHROMIUM")
    return chosen or next(filter(None, map(shutil.which, NAMES)), None)


class Failure(AssertionError):
    """The browser, or a script in it, says no."""


class Browser:
    """The process. Tabs are made by tab()."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(prefix="gpuledger-page-", ignore_cleanup_errors=True)  # its children may still write
        read, self._write = os.pipe()
        self._read, write = os.pipe()

        def hand_over():
            # Chromium reads descriptor 3 and writes 4; either may be where the other has to go.
            high = os.dup(read), os.dup(write)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [
                find(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--mute-audio",
                "--force-color-profile=srgb", "--font-render-hinting=none", f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=hand_over, close_fds=False,
        )
        os.close(read)
        os.close(write)
        self._rest = b""
        self._number = 0
        self._answers = {}
        self._contexts = []
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()

    def _pump(self, until):
        """Takes what has come, at least one message if there is one in time."""
        while b"\0" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise Failure("the browser does not answer")
            piece = os.read(self._read, 1 << 16)
            if not piece:
                raise Failure("the browser has ended")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        if "id" in message:
            self._answers[message["id"]] = message
        else:
            self.events.append(message)

    def call(self, method, session=None, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while self._number not in self._answers:
            self._pump(until)
        answer = self._answers.pop(self._number)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def close_tabs(self):
        for context in self._contexts:
            self.call("Target.disposeBrowserContext", browserContextId=context)
        self._contexts = []
        self.events = []

    def tab(self, width=1440, height=900, dark=False, scale=1, mobile=False):
        tab = Tab(self, width, height, dark, scale, mobile)
        self._contexts.append(tab.context)
        return tab


class Tab:
    """A page of its own, with a storage of its own."""

    def __init__(self, browser, width, height, dark, scale, mobile):
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context,
                              width=width, height=height)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height, scale, mobile)
        self.theme(dark)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=mobile)

    def theme(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression; a promise's, if it is one."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failure(f"{script[:200]}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait(self, script, seconds=PATIENCE):
        """Until the expression holds."""
        until = time.monotonic() + seconds
        while True:
            try:
                value = self.run(f"Boolean({script})")
            except Failure:  # between two documents
                value = None
            if value:
                return value
            if time.monotonic() > until:
                raise Failure(f"it never came to be that {script}; the page says: "
                              f"{self.run('document.body?.innerText.slice(0, 600)')}")
            time.sleep(0.05)

    def key(self, name, text="", code=0, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                      modifiers=modifiers, **extra)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the console and the log have of this page: errors, warnings, broken policies."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
        return found

    def requests(self):
        """The addresses that the page has asked for."""
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"]
