"""Controls a headless Chromium through its DevTools pipe, to load pages and to read their
requests, messages and rendering. Needs only the browser, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    """Returns the path of the installed browser, otherwise of one that playwright
    downloaded, otherwise None."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    kept = Path.home() / ".cache" / "ms-playwright"
    return next(map(str, kept.glob("chromium-*/chrome-linux*/chrome")), None)


#: JavaScript that returns width, height and base64 of the pixels (red, green, blue, alpha)
#: of a PNG.
PIXELS = """(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,%s";
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return [image.width, image.height, btoa(text)];
})()"""


@dataclass
class Browser:
    """A connection to a browser. `requests` and `messages` are those of the page that
    `open` loaded last."""

    commands: Any
    answers: Any
    session: str = ""
    number: int = 0
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    loaded: bool = False
    pending: bytes = b""

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        self.commands.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.pending:
            part = os.read(self.answers.fileno(), 1 << 20)
            assert part, "The browser has ended."
            self.pending += part
        text, _, self.pending = self.pending.partition(b"\0")
        message = json.loads(text)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Log.entryAdded":
                self.messages.append(parameters["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.messages.append(text.decode())
            case "Page.loadEventFired":
                self.loaded = True
        return message

    def _target(self) -> str:
        """Opens a tab and returns its session ID."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        return attached["sessionId"]

    def open(self, page: Path, width: int = 1400, height: int = 1000) -> None:
        self.requests, self.messages, self.loaded = [], [], False
        self.session = ""
        self.session = self._target()
        for part in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{part}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=False, **size)
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self.loaded:
            self._next()

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression in the page, None for undefined."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, whole: bool = True) -> torch.Tensor:
        """Returns a picture of the whole page or, if not `whole`, of the visible part:
        uint8 [height, width, 3]."""
        png = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        page, self.session = self.session, ""
        self.session = self._target()  # decodes the picture in a separate tab
        width, height, text = self.evaluate(PIXELS % png)
        self.session = page
        data = bytearray(base64.b64decode(text))
        return torch.frombuffer(data, dtype=torch.uint8).view(height, width, 4)[..., :3]


#: Starts a program with two pipes at the file descriptors that --remote-debugging-pipe
#: uses.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextmanager
def browser(executable: str, profile: Path) -> Iterator[Browser]:
    down_read, down_write = os.pipe()
    up_read, up_write = os.pipe()
    arguments = [
        executable, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--hide-scrollbars", "--disable-background-networking",
        f"--user-data-dir={profile}", "--remote-debugging-pipe",
    ]  # fmt: skip

    launch = [sys.executable, "-S", "-c", LAUNCH, str(down_read), str(up_write)]
    process = subprocess.Popen(
        [*launch, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(down_read, up_write),
    )
    os.close(down_read)
    os.close(up_write)
    with os.fdopen(down_write, "wb") as commands, os.fdopen(up_read, "rb") as answers:
        try:
            yield Browser(commands, answers)
        finally:
            process.terminate()
            process.wait()
