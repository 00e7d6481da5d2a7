"""Two nodes with a bridge beside each, for clients of MQTT."""

import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from nodes import PATIENCE, free_ports, running, settings, until

# Sessions without connection that a bridge keeps.
SESSIONS = 8


class Bridges:
    def __init__(self, onym: str, stack: ExitStack) -> None:
        self.onym, self.stack = onym, stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.udp = free_ports(socket.SOCK_DGRAM, 2)
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = [self.node(at) for at in range(2)]

    def start(self, name: str, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        """A program that ends with the test, and the file with what it says."""
        said = self.folder / name
        self.programs[name] = self.stack.enter_context(running(list(words), said))
        return self.programs[name], said

    def node(self, at: int) -> int:
        """Starts a node and its bridge; the port of that."""
        roles = '["rendezvous", "topology"]' if at == 0 else "[]"
        sets = [
            f'faces.unix.path="{self.folder}/{at}.sock"', "faces.tcp.listen=[]",
            "faces.websocket.listen=[]", f'faces.udp.listen="127.0.0.1:{self.udp[at]}"',
            "push.enabled=true", f'push.node="{at + 1}"', f"push.roles={roles}",
            f'push.link=[{{face="udp4://127.0.0.1:{self.udp[1 - at]}"}}]',
        ]  # fmt: skip
        _, said = self.start(f"daemon{at}", self.onym, "daemon", *settings(sets))
        until(lambda: "ready" in said.read_text(), f"daemon {at}")
        command = [*self.command(at), "gateway", "mqtt", "--listen", "127.0.0.1:0"]
        command += ["--sessions-max", str(SESSIONS)]
        _, said = self.start(f"bridge{at}", *command)
        until(lambda: "ready" in said.read_text(), f"bridge {at}")
        line = next(line for line in said.read_text().splitlines() if line.startswith("ready"))
        return int(line.rpartition(":")[2])

    def command(self, at: int) -> list[str]:
        return [self.onym, "--node", f"unix://{self.folder}/{at}.sock"]

    def ended(self, at: int) -> str:
        """A bridge ends; what it told."""
        program = self.programs[f"bridge{at}"]
        program.terminate()
        program.wait(PATIENCE)
        return (self.folder / f"bridge{at}").read_text()
