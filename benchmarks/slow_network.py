"""Simulates a slow network between the processes of a group on one machine.

Gloo's processes publish the addresses at which they listen in the group's store. A
`SlowStore` replaces each by the address of a TCP forwarder, which delays the data and
limits its rate. This needs neither root nor a kernel module.
"""

from __future__ import annotations

import multiprocessing
import queue
import socket
import struct
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch.distributed as dist

CHUNK = 64 << 10


@dataclass(frozen=True)
class Network:
    delay: float  #: seconds, in one direction
    rate: float  #: bytes per second, in each direction


class _Direction:
    """One direction of the network, which all connections share."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.lock = threading.Lock()
        self.free = 0.0

    def arrival(self, size: int) -> float:
        """Returns the time (`time.monotonic`) at which `size` bytes sent now arrive."""
        with self.lock:
            self.free = max(self.free, time.monotonic()) + size / self.network.rate
            return self.free + self.network.delay


def _pass_on(source: socket.socket, target: socket.socket, way: _Direction) -> None:
    arriving: queue.Queue = queue.Queue()

    def deliver() -> None:
        while True:
            moment, data = arriving.get()
            time.sleep(max(0.0, moment - time.monotonic()))
            try:
                if not data:
                    return target.shutdown(socket.SHUT_WR)
                target.sendall(data)
            except OSError:
                return None

    threading.Thread(target=deliver, daemon=True).start()
    data = b"-"
    while data:
        try:
            data = source.recv(CHUNK)
        except OSError:
            data = b""
        arriving.put((way.arrival(len(data)), data))


def _listen(rank: int) -> socket.socket:
    """Listens on a port that is smaller (rank 0) or larger (rank 1) than the ports that
    the system assigns, in either byte order. Of two Gloo processes, the one with the
    larger address connects. Each compares its own address, which isn't replaced, with
    the other's announced one; both must come to the same result."""
    for high in range(0x20, 0x70) if rank == 0 else range(0xF0, 0xFF):
        try:
            return socket.create_server(("127.0.0.1", high << 8 | rank * 0xFF))
        except OSError:  # in use
            continue
    raise OSError("no port is free")


def _forward(rank: int, network: Network, channel: Connection) -> None:
    """Receives addresses and answers each with the port of a forwarder to it."""
    ways = _Direction(network), _Direction(network)

    def accept(server: socket.socket, address: tuple[str, int]) -> None:
        while True:
            ends = server.accept()[0], socket.create_connection(address)
            for end in ends:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for (source, target), way in zip((ends, ends[::-1]), ways, strict=True):
                threading.Thread(
                    target=_pass_on, args=(source, target, way), daemon=True
                ).start()

    while True:
        try:
            address = channel.recv()
        except EOFError:  # the process has ended
            return
        server = _listen(rank)
        threading.Thread(target=accept, args=(server, address), daemon=True).start()
        channel.send(server.getsockname()[1])


class SlowStore(dist.Store):
    """Wraps a store. In each value that is set, replaces the addresses on 127.0.0.1 (IPv4,
    in the form of a `sockaddr_in`) by those of forwarders. Supports two processes."""

    def __init__(self, store: dist.Store, rank: int, network: Network) -> None:
        super().__init__()
        self.store = store
        self.ports: dict[int, int] = {}
        spawn = multiprocessing.get_context("spawn")
        self.channel, theirs = spawn.Pipe()
        self.process = spawn.Process(
            target=_forward, args=(rank, network, theirs), daemon=True
        )
        self.process.start()

    def set(self, key: str, value: bytes | str) -> None:
        if isinstance(value, bytes):
            value = self._replace_addresses(value)
        self.store.set(key, value)

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def add(self, key: str, amount: int) -> int:
        return self.store.add(key, amount)

    def check(self, keys: list[str]) -> bool:
        return self.store.check(keys)

    def delete_key(self, key: str) -> bool:
        return self.store.delete_key(key)

    def wait(self, keys: list[str], *timeout) -> None:
        self.store.wait(keys, *timeout)

    def _replace_addresses(self, value: bytes) -> bytes:
        family, host = struct.pack("=H", socket.AF_INET), b"\x7f\0\0\1"
        at = value.find(family)
        while at >= 0:
            if value[at + 4 : at + 8] == host:
                (port,) = struct.unpack_from("!H", value, at + 2)
                if port not in self.ports:
                    self.channel.send(("127.0.0.1", port))
                    self.ports[port] = self.channel.recv()
                new = struct.pack("!H", self.ports[port])
                value = value[: at + 2] + new + value[at + 4 :]
            at = value.find(family, at + 1)
        return value
