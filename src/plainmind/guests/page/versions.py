"""Which versions of a file a request names: `If-Match` and `If-None-Match`, of RFC 9110, as proxies pass them on.

A tag that a proxy made weak (`W/"…"`, as nginx does when it compresses) counts as the one that it was. The RFC would
refuse it in `If-Match`; but our etags are hashes of a file's bytes, and the weak one still says which bytes were read.
Whoever sits behind such a proxy could otherwise save nothing.
"""

from __future__ import annotations

from plainmind.base.lazy import pattern
from plainmind.base.value import value

_TAG = pattern(r'(?:W/)?"([^"]*)"|([^\s",]+)')  # some programs leave the quotes out


@value
class Versions:
    """The etags of a header; any version that there is, where it says `*`."""

    etags: frozenset[str]
    is_any: bool

    def __bool__(self) -> bool:
        return self.is_any or bool(self.etags)

    def has(self, etag: str) -> bool:
        """Whether the version that is there is among them."""
        return self.is_any or etag in self.etags


def versions_in(header: str) -> Versions:
    """Read a header; one that has no tag names a version that no file ever has."""
    if header.strip() == "*":
        return Versions(frozenset(), is_any=True)
    found = frozenset(quoted or bare for quoted, bare in _TAG.findall(header))
    return Versions(found or frozenset({""} if header else ()), is_any=False)
