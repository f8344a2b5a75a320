"""Downloads the sources of libraries that wheels contain, from apt's Debian mirror."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from steps import STATE, StepFailed, once

FOLDER = STATE / "sources"


def debian_mirror() -> str:
    """Returns the address from which this machine's apt loads Debian's packages. Raises
    StepFailed if there is none."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        return answer.stdout.split()[0].rstrip("/")
    except (OSError, subprocess.CalledProcessError, IndexError):
        raise StepFailed(
            "apt has no source with Debian's packages\n"
            "  what to do: run this on Debian, after apt-get update"
        ) from None


@dataclass(frozen=True)
class Source:
    """An archive with a folder of sources. `path`: the archive's path in Debian's pool."""

    folder: str
    path: str
    digest: str

    def fetch(self) -> Path:
        """Downloads and unpacks the sources; returns their folder. Raises StepFailed if the
        archive can't be loaded: Debian removes it when there is a newer version."""
        path = FOLDER / self.folder

        def load() -> None:
            FOLDER.mkdir(parents=True, exist_ok=True)
            archive = FOLDER / self.path.rpartition("/")[2]
            if not archive.exists():
                self._download(archive)
            if hashlib.sha256(archive.read_bytes()).hexdigest() != self.digest:
                raise StepFailed(
                    f"{archive} isn't the expected file: its digest differs\n"
                    "  what to do: remove it, so that it is loaded again"
                )
            shutil.rmtree(path, ignore_errors=True)
            with tarfile.open(archive) as contents:
                # The tarfile of Debian 12's Python (3.11.2) has no extraction filters. The
                # archive is trusted, because its digest is known.
                if hasattr(tarfile, "data_filter"):
                    contents.extraction_filter = tarfile.data_filter
                contents.extractall(FOLDER)

        once(f"source-{self.folder}", [self.digest, str(FOLDER)], load)
        return path

    def _download(self, archive: Path) -> None:
        url = f"{debian_mirror()}/pool/main/{self.path}"
        part = archive.with_name(archive.name + ".part")
        try:
            with urllib.request.urlopen(url) as data, part.open("wb") as file:
                shutil.copyfileobj(data, file)
        except OSError as error:
            raise StepFailed(
                f"{url} can't be loaded: {error}\n"
                f"  what to do: is the network up? Otherwise put it into {FOLDER}"
            ) from None
        part.rename(archive)


#: Debian 12's protobuf, as sources: the build uses Debian's headers and protoc, but its
#: static library can't be linked into a shared library.
PROTOBUF = Source(
    "protobuf-3.21.12",
    "p/protobuf/protobuf_3.21.12.orig.tar.gz",
    "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53",
)
#: oneDNN as sources for AArch64: PyPI only has oneDNN for x86-64.
ONEDNN = Source(
    "oneDNN-3.7.2",
    "o/onednn/onednn_3.7.2+ds.orig.tar.xz",
    "0cc51ca26c1af6a2bb1e71e378e7046f3ceb3e71791ee9d4e246d50f904a6ea6",
)
