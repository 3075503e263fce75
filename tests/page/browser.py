# SPDX-License-Identifier: BSD-3-Clause
"""Headless Chromium for the test and the pictures of the HTML page."""
import base64
import json
import shutil

PROGRAMS = ("chromium", "chromedriver")


def missing():
    """Names the part of the browser that this machine lacks, or returns ""."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "the Python module selenium"
    return next((p for p in PROGRAMS if not shutil.which(p)), "")


class Browser:
    def __init__(self, folder):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which(PROGRAMS[0])
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking", f"--user-data-dir={folder}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which(PROGRAMS[1])), options=options)
        self.driver.set_script_timeout(120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def shape(self, width, height=900, scheme="light"):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        # Two frames: one for the event, one for what it asks to be drawn.
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, path, width=1200, height=900, scheme="light"):
        """Loads a page. Returns the messages of its console and the addresses that it asked for."""
        self.driver.get("about:blank")
        self.shape(width, height, scheme)
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(path.resolve().as_uri())
        return self.said()

    def said(self):
        messages = [m["message"] for m in self.driver.get_log("browser")]
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return messages, [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def picture(self, path, height=None):
        """The page from its top, `height` pixels or all of it."""
        size = self.run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True,
                                                                      "clip": {"x": 0, "y": 0, "width": size[0], "height": min(height or size[1], size[1]), "scale": 1}})
        path.write_bytes(base64.b64decode(shot["data"]))
