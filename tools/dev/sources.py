"""Sources of other projects that a wheel contains, from Debian's archive."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from steps import STATE, StepFailed, once

FOLDER = STATE / "sources"


@dataclass(frozen=True)
class Source:
    """An archive with one folder of sources."""

    folder: str
    url: str
    digest: str

    def fetch(self) -> Path:
        """The unpacked sources. Debian removes an archive when it has a newer version."""
        path = FOLDER / self.folder

        def load() -> None:
            FOLDER.mkdir(parents=True, exist_ok=True)
            archive = FOLDER / self.url.rpartition("/")[2]
            try:
                with (
                    urllib.request.urlopen(self.url) as data,
                    archive.open("wb") as file,
                ):
                    shutil.copyfileobj(data, file)
            except OSError as error:
                raise StepFailed(
                    f"{self.url} can't be loaded: {error}\n"
                    f"  what to do: is the network up? Otherwise put it into {FOLDER}"
                ) from None
            if hashlib.sha256(archive.read_bytes()).hexdigest() != self.digest:
                raise StepFailed(
                    f"{archive} isn't the expected file: its digest differs"
                )
            shutil.rmtree(path, ignore_errors=True)
            with tarfile.open(archive) as contents:
                contents.extractall(FOLDER, filter="data")

        once(f"source-{self.folder}", [self.digest, str(FOLDER)], load)
        return path


_POOL = "http://deb.debian.org/debian/pool/main"

#: Debian 12's protobuf, whose headers and protoc the build uses: its archive can't be
#: linked into a shared library.
PROTOBUF = Source(
    "protobuf-3.21.12",
    f"{_POOL}/p/protobuf/protobuf_3.21.12.orig.tar.gz",
    "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53",
)
#: PyPI has oneDNN for x86-64 only.
ONEDNN = Source(
    "oneDNN-3.7.2",
    f"{_POOL}/o/onednn/onednn_3.7.2+ds.orig.tar.xz",
    "0cc51ca26c1af6a2bb1e71e378e7046f3ceb3e71791ee9d4e246d50f904a6ea6",
)
