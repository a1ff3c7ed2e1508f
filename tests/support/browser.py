"""A real browser, driven by the WebDriver protocol (https://www.w3.org/TR/webdriver2/): Debian's chromium."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.support.waiting import until

SKIP_REASON = "no browser: apt-get install chromium chromium-driver"
TAB, ENTER, ESCAPE, SPACE, SHIFT = "\ue004", "\ue007", "\ue00c", " ", "\ue008"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id in the protocol
_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,900",
)  # fmt: skip


def is_installed() -> bool:
    """Return True if the browser and its driver are installed."""
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    """One window of a browser."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http, self._session = http, session

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a command: a POST if it has a body."""
        url = f"/session/{self._session}/{path}"
        answer = self._http.get(url) if body is None else self._http.post(url, json=body)
        value = answer.json()["value"]
        if answer.is_error:
            raise AssertionError(f"{path}: {value['message']}")
        return value

    def open(self, url: str) -> None:
        self.call("url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page; return what it returns."""
        return self.call("execute/sync", {"script": script, "args": list(arguments)})

    def press(self, keys: str) -> None:
        """Press keys one after another, wherever the focus is; Shift holds for the next one."""
        held = False
        actions: list[dict[str, str]] = []
        for key in keys:
            actions.append({"type": "keyDown", "value": key})
            if key == SHIFT:
                held = True
                continue
            actions.append({"type": "keyUp", "value": key})
            if held:
                actions.append({"type": "keyUp", "value": SHIFT})
                held = False
        self.call("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, text: str, inside: str = "body") -> None:
        """Click a shown button, link or label by its text or label."""
        script = """
            const [text, inside] = arguments;
            const shown = [...document.querySelectorAll(`${inside} :is(button, a, label)`)]
                .filter((each) => each.checkVisibility());
            return shown.find((each) => [each.textContent.trim(), each.getAttribute("aria-label")].includes(text));
        """

        def click() -> bool:
            found = self.run(script, text, inside)
            try:
                if found is not None:
                    self.call(f"element/{found[_ELEMENT]}/click", {})
            except AssertionError as error:
                if "stale element" not in str(error):  # the page has replaced it meanwhile
                    raise
                return False
            return found is not None

        until(click)

    def wait_for(self, text: str, inside: str = "body") -> None:
        """Wait until the page shows a string."""
        until(lambda: text in self.text(inside))

    def text(self, inside: str = "body") -> str:
        """Return the shown text."""
        found: str = self.run("return document.querySelector(arguments[0]).innerText", inside)
        return found

    def resize(self, width: int, height: int) -> None:
        """Make the page as wide and high as that of a telephone, say."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def take_screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("screenshot")))

    def console(self) -> list[str]:
        """Return the errors and warnings that the browser has logged since the last call."""
        return [row["message"] for row in self.call("se/log", {"type": "browser"})]


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile.

    Args:
        profile: an empty folder.
    """
    with subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as driver:
        assert driver.stdout is not None
        try:
            line = next(line for line in driver.stdout if "started successfully on port" in line)
            port = line.rstrip().rstrip(".").rpartition(" ")[2]
            options = {"binary": shutil.which("chromium"), "args": [*_ARGUMENTS, f"--user-data-dir={profile}"]}
            capabilities = {
                "browserName": "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                made = http.post("/session", json={"capabilities": {"alwaysMatch": capabilities}}).json()["value"]
                try:
                    yield Browser(http, made["sessionId"])
                finally:
                    with suppress(httpx.HTTPError):
                        http.delete(f"/session/{made['sessionId']}")
        finally:
            driver.terminate()
