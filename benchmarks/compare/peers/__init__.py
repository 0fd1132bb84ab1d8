"""One module a peer; `PEERS` is the order in which they stand on the page."""

from __future__ import annotations

from collections.abc import Mapping

from compare.peer import Peer
from compare.peers.basic_memory import BasicMemory
from compare.peers.mem0 import Mem0
from compare.peers.memsearch import Memsearch
from compare.peers.openclaw import OpenClaw
from compare.peers.plainmind import Plainmind
from compare.peers.qmd import Qmd, QmdWithVectors
from compare.peers.ripgrep import Ripgrep

PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Plainmind(),
        OpenClaw(),
        Qmd(),
        QmdWithVectors(),
        Memsearch(),
        BasicMemory(),
        Mem0(),
        Ripgrep(),
    )
}
