"""A headless Chromium, driven through a pipe by its DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "google-chrome", "chromium-browser")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
FLAGS += ["--allow-file-access-from-files", "--disable-extensions", "--hide-scrollbars"]
# Chromium reads its file 3 and writes to its file 4.
LAUNCH = """
import fcntl, os, sys
for fd, copy in enumerate([fcntl.fcntl(int(n), 0, 10) for n in sys.argv[1:3]], 3):
    os.dup2(copy, fd)
os.execv(sys.argv[3], sys.argv[3:])
"""
LIMIT = 120  # seconds for one answer


def find_chromium():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; use it in a with statement."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.number, self.events, self.session = 0, [], None
        ends = [os.pipe(), os.pipe()]
        read, write = ends[0][0], ends[1][1]
        command = [find_chromium(), *FLAGS, "--remote-debugging-pipe"]
        command += [f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(read), str(write), *command],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self.to, self.answers = os.fdopen(ends[0][1], "wb"), os.fdopen(ends[1][0], "rb")
        try:
            self.attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def attach(self):
        """Open an empty page, to which all later commands go."""
        page = self.send("Target.createTarget", url="about:blank")
        attached = self.send("Target.attachToTarget", flatten=True, **page)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "DOM"):
            self.send(f"{domain}.enable")

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.to.close()
        self.answers.close()
        self.folder.cleanup()

    def send(self, method, **params):
        """Send one command and return its result; events are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def receive(self):
        data = bytearray()
        while not data.endswith(b"\0"):
            part = self.answers.peek(1)
            assert part, "the browser has ended"
            end = part.find(b"\0") + 1 or len(part)
            data += self.answers.read(end)
        return json.loads(data[:-1])

    def open(self, url):
        """Open a page and wait until it has loaded."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive())

    def run(self, script):
        """Return the value of a JavaScript expression, which may await."""
        found = self.send(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            replMode=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition):
        """Wait until a JavaScript expression is true."""
        self.run(
            f"""await new Promise((good, bad) => {{ const start = Date.now();
            (function look() {{
              if ({condition}) return good();
              if (Date.now() - start > {1000 * LIMIT}) return bad("waited in vain");
              setTimeout(look, 20); }})(); }})"""
        )

    def choose_files(self, selector, paths):
        """Put files, or a folder, into an input of the page."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)
        files = [str(path) for path in paths]
        self.send("DOM.setFileInputFiles", files=files, nodeId=node["nodeId"])

    def errors(self):
        """What the page threw, and what it asked of a network."""
        self.run("0")
        thrown = [
            e["params"]["exceptionDetails"]
            for e in self.events
            if e.get("method") == "Runtime.exceptionThrown"
        ]
        asked = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return thrown, [url for url in asked if not url.startswith(("file:", "data:"))]

    def screenshot(self, path, width, height=None, **media):
        """Save the page as a PNG, as wide as asked and as high as it is."""
        features = [{"name": n.replace("_", "-"), "value": v} for n, v in media.items()]
        self.send("Emulation.setEmulatedMedia", features=features)
        size = {"width": width, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", height=height or 900, **size)
        if height is None:
            height = self.run("document.documentElement.scrollHeight")
            self.send("Emulation.setDeviceMetricsOverride", height=height, **size)
        time.sleep(0.5)  # until all of it is painted
        found = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))
