#!/usr/bin/env python3
"""Makes the pictures of the documentation from the demonstration, in three minutes. Needs playwright from PyPI.

    docs/images/make.py --bin target/release/tidegate --browser chromium --out docs/images
"""

import pathlib
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "scripts"))
from playwright.sync_api import sync_playwright  # noqa: E402

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
    page = browser.new_page(viewport={"width": 1180, "height": 700})
    for name, (path, element) in PICTURES.items():
        page.goto(base + path)
        page.locator(element).screenshot(path=out / f"{name}.png")


def main():
    call = given("browser", "out")
    demo = subprocess.Popen(
        [call.bin, "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    base = demo.stdout.readline().removeprefix("listening on ").strip()
    try:
        # It writes less than a pipe holds until then.
        time.sleep(STORY)
        path = shutil.which(call.browser)
        with sync_playwright() as browsers, browsers.chromium.launch(executable_path=path, args=["--no-sandbox"]) as browser:
            take(browser, base, call.out)
    finally:
        demo.terminate()
        demo.wait(timeout=WAIT)


if __name__ == "__main__":
    main()
