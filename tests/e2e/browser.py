"""A headless Chromium, spoken to through two pipes: pages opened, keys pressed, errors and requests written down.

It speaks the DevTools protocol: JSON objects, each ended by a zero byte. Needs Python's standard library only.
"""
import base64
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

SECONDS = 60  # for one answer


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="minillm-browser-")
        from_us, self.to_browser = os.pipe()
        self.from_browser, to_us = os.pipe()

        def give_pipes():  # 3 and 4 are where it looks for them; both are taken here, by our own pipes or others
            high = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (from_us, to_us)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--force-color-profile=srgb", f"--user-data-dir={self.profile}"],
            pass_fds=(3, 4), preexec_fn=give_pipes, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.session = None

    def close(self):
        try:
            self.call("Browser.close", session=False)
            self.process.wait(20)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=True, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session and self.session:
            request["sessionId"] = self.session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[os.write(self.to_browser, text):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    # --- pages -------------------------------------------------------------------------------------------------------

    def new_page(self, width=1280, height=900, scheme="light", touch=False):
        """A fresh tab with a session storage of its own."""
        target = self.call("Target.createTarget", session=False, url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", session=False, targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close_page(self):
        self.call("Page.close")
        self.session = None

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait("document.documentElement.dataset.readyMs !== undefined")

    def wait(self, condition, seconds=SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(condition, fail=False):
                return
            time.sleep(0.02)
        raise RuntimeError(f"waited in vain for {condition}; the page says {self.errors()}")

    def value(self, expression, fail=True):
        try:
            answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        except RuntimeError:
            if fail:
                raise
            return None  # between two pages
        if "exceptionDetails" in answer:
            if fail:
                raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
            return None
        return answer["result"].get("value")

    def errors(self):
        """What went wrong since open(): exceptions, and what the browser itself complains of."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    # --- hands -------------------------------------------------------------------------------------------------------

    def press(self, key, modifiers=0, text=None):
        code = {"Enter": 13, "Tab": 9, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                "ArrowDown": 40, "Escape": 27}.get(key, ord(key[0].upper()))
        typed = text if text is not None else "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=typed,
                  modifiers=modifiers)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code, modifiers=modifiers)

    def place(self, selector):
        """Left, top, width and height of an element in the window, after scrolling it there."""
        return self.value(f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
            node.scrollIntoView({{block: "center", behavior: "instant"}});
            const box = node.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; }})()""")

    def mouse(self, kind, x, y, clicks=1, button="left", held=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=held, clickCount=clicks)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y, 0, "none")

    def click(self, selector, clicks=1):
        x, y, width, height = self.place(selector)
        for number in range(1, clicks + 1):
            self.mouse("mousePressed", x + width / 2, y + height / 2, number, held=1)
            self.mouse("mouseReleased", x + width / 2, y + height / 2, number)

    def drag(self, x0, y0, x1, y1):
        self.move(x0, y0)
        self.mouse("mousePressed", x0, y0, held=1)
        for part in (0.3, 0.6, 1):
            self.mouse("mouseMoved", x0 + (x1 - x0) * part, y0 + (y1 - y0) * part, held=1)
        self.mouse("mouseReleased", x1, y1)

    def screenshot(self, path, whole=False):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))
