#!/usr/bin/env python3
"""Makes the pictures of the documentation from the demonstration, in three minutes. Standard library only.

    docs/images/make.py --bin target/release/tidegate --browser chromium --out docs/images
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "scripts"))
from browser_pipe import Browser, free_the_pipe  # noqa: E402
from stage import WAIT, given  # noqa: E402

# How long the demonstration runs until it has shown everything, in seconds.
STORY = 165
# A picture each: the page, and the element of it that is shown.
PICTURES = {
    "life": ("/feeds/lighthouse/about", "figure.life"),
    "overview": ("/", "body"),
}


def take(browser, base, out):
    """Takes the pictures."""
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=1180, height=700, deviceScaleFactor=1, mobile=False,
    )
    for name, (path, element) in PICTURES.items():
        browser.go(base + path)
        box = browser.value(
            "(r => [r.x, r.y, r.width, r.height])"
            f"(document.querySelector({json.dumps(element)}).getBoundingClientRect())"
        )
        clip = dict(zip(["x", "y", "width", "height"], box), scale=1)
        done = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        (out / f"{name}.png").write_bytes(base64.b64decode(done["data"]))


def main():
    call = given()
    free_the_pipe()
    demo = subprocess.Popen(
        [call.bin, "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    base = demo.stdout.readline().removeprefix("listening on ").strip()
    with tempfile.TemporaryDirectory() as profile:
        try:
            # It writes less than a pipe holds until then.
            time.sleep(STORY)
            browser = Browser(call.browser, profile)
            try:
                take(browser, base, call.out)
            finally:
                browser.end()
        finally:
            demo.terminate()
            demo.wait(timeout=WAIT)


if __name__ == "__main__":
    main()
