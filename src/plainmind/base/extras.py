"""What to type to install an optional part, such as LanceDB or the MCP server, into the environment that runs this."""

from __future__ import annotations

import os
import sys

from plainmind.base.errors import shell_word

_ANYWHERE = "PATH"  # stands for the checkout or the wheel, where it is not known


def install_hint(extra: str) -> str:
    """Say how to install an extra: from where this package came, with the program that installed it."""
    path, is_editable = _origin()
    wanted = f"{path or _ANYWHERE}[{extra}]"
    edit = " -e" if is_editable else ""
    said = f"{_installer()}{edit} {shell_word(wanted)}"
    return f"`{said}`" if path else f"`{said}`, where {_ANYWHERE} is a checkout or a wheel of plainmind"


def weights_hint(package: str) -> str:
    """Say how to install weights, which are a package of their own in a checkout, beside this one."""
    path, _ = _origin()
    checkout = path if path and os.path.isdir(path) else "CHECKOUT"
    weights = shell_word(f"{checkout}/packages/{package}")
    installer = _installer()
    if installer.startswith("pipx"):
        said = f"pipx inject plainmind {weights}"
    elif installer.startswith("uv tool"):
        said = f"{installer} {shell_word(path or _ANYWHERE)} --with {weights}"
    else:
        said = f"{installer} {weights}"
    return f"`{said}`" if checkout == path else f"`{said}`, where CHECKOUT is a checkout of plainmind"


def _origin() -> tuple[str | None, bool]:
    """The checkout or wheel that this was installed from, if it is still there, and whether it is used in place."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        written = distribution("plainmind").read_text("direct_url.json")
    except PackageNotFoundError:
        return None, False
    facts = json.loads(written) if written else {}
    url = urlsplit(str(facts.get("url", "")))
    path = unquote(url.path)
    if url.scheme != "file" or not os.path.exists(path):
        return None, False
    return path, bool(facts.get("dir_info", {}).get("editable"))


def _installer() -> str:
    from importlib.util import find_spec

    folders = sys.prefix.split(os.sep)
    if "pipx" in folders:
        return "pipx install --force"
    if folders[-3:-1] == ["uv", "tools"]:
        return "uv tool install"
    python = shell_word(sys.executable)
    return f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
