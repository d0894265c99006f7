"""Chromium that is driven over its pipe, for the programs beside it. Standard library only."""

import base64
import json
import os
import subprocess
import time

from stage import WAIT, Ended

# A browser without a window, which asks for nothing of its own accord.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
]

def free_the_pipe():
    """The browser finds its pipe at 3 and 4, so they must be ours to give away."""
    while os.open(os.devnull, os.O_RDONLY) < 4:
        pass


class Browser(Ended):
    """Chromium over its pipe: messages of JSON that end with a zero."""

    def __init__(self, program, profile):
        here, there = os.pipe(), os.pipe()

        def wire():
            os.dup2(here[0], 3)
            os.dup2(there[1], 4)

        # What the browser reads and writes must not stand at 3 and 4 before it is put there.
        self.process = subprocess.Popen(
            [
                program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=(3, 4, here[0], there[1]), preexec_fn=wire,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        self.to, self.source = os.fdopen(here[1], "wb"), os.fdopen(there[0], "rb")
        self.number, self.buffer, self.session, self.console = 0, b"", None, []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Page", "DOM", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while True:
            answer = self.read()
            if answer.get("method") in ("Runtime.consoleAPICalled", "Log.entryAdded"):
                self.console.append(json.dumps(answer["params"]))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self):
        while b"\0" not in self.buffer:
            piece = self.source.read1(65536)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def value(self, expression):
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def go(self, address):
        self.call("Page.navigate", url=address)
        self.until(f"document.readyState == 'complete' && location.href == {json.dumps(address)}")

    def until(self, expression):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            try:
                if self.value(expression):
                    return
            except RuntimeError:
                # A page that goes away, or has not come yet, answers nothing.
                pass
            time.sleep(0.05)
        raise RuntimeError(f"never came to be: {expression}")

    def click(self, selector):
        self.value(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.value(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for kind in ["mousePressed", "mouseReleased"]:
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left",
                clickCount=1,
            )

    def key(self, key, **more):
        for kind in ["rawKeyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **more)

    def type(self, selector, text, anew=False):
        """Types at the end of a field, or in the place of what it has."""
        self.click(selector)
        if anew:
            self.call("Input.dispatchKeyEvent", type="rawKeyDown", key="a", code="KeyA", commands=["selectAll"])
        self.call("Input.insertText", text=text)

    def pick(self, selector, value):
        """Goes down the values of a field, as keys do, to one of them."""
        field = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{field}.focus()")
        self.key("Home", windowsVirtualKeyCode=36)
        for _ in range(self.value(f"{field}.options.length")):
            if self.value(f"{field}.value") == value:
                return
            self.key("ArrowDown", windowsVirtualKeyCode=40)
        raise RuntimeError(f"{selector} cannot be {value}")

    def choose(self, selector, path):
        """Chooses a file."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path.resolve())], nodeId=node)

    def picture(self, path, width=1180, height=1300, dark=False):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        done = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(done["data"]))

    def end(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(timeout=WAIT)
