"""Which embedding providers exist, and how each is made; a provider's module is imported when it is chosen.

Other packages add theirs through the entry-point group `plainmind.embedders`: a name, and `module:factory`
where the factory takes the settings and returns an `Embedder`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from plainmind.base.errors import ConfigError
from plainmind.base.value import replace
from plainmind.embed.settings import AUTO, KEY_VARIABLES, EmbeddingSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoints
    from typing import TypeAlias

    from plainmind.embed.protocol import Embedder

Factory: TypeAlias = "Callable[[EmbeddingSettings], Embedder]"

ENTRY_POINTS = "plainmind.embedders"
_OURS = {
    "builtin": "plainmind.embed.builtin:create",
    "local": "plainmind.guests.local.llama:create",
    "none": "plainmind.embed.none:create",
    "onnx": "plainmind.guests.local.onnx:create",
}


def create_embedder(name: str, settings: EmbeddingSettings) -> Embedder:
    """Make the provider `name`; `auto` takes the best one that works without being set up.

    Those on another machine need a key and a ledger too, and are made where these are known.
    """
    if name == AUTO:
        # A model set beside `auto` belongs to whichever provider it was written for, not to this one.
        return create_embedder("builtin", replace(settings, provider="builtin", model=None))
    return _factory(name)(settings)


def known_providers() -> tuple[str, ...]:
    """Every name that `provider` takes, ours and those of installed plugins."""
    return (AUTO, *sorted({*_OURS, *KEY_VARIABLES, *_plugins().names}))


def _factory(name: str) -> Factory:
    target = _OURS.get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        ours: Factory = getattr(import_module(module), attribute)
        return ours
    for plugin in _plugins().select(name=name):
        try:
            loaded: Factory = plugin.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"the embedding provider `{name}` cannot be loaded: {error}",
                key="provider",
                hint=f"reinstall the package that brings `{plugin.value}`, or choose another provider",
            ) from error
        return loaded
    raise _unknown(name)


def _plugins() -> EntryPoints:
    from importlib.metadata import entry_points  # costs some 20 ms, and most people have no plugin

    return entry_points(group=ENTRY_POINTS)


def _unknown(name: str) -> ConfigError:
    from difflib import get_close_matches

    known = known_providers()
    nearest = get_close_matches(name.lower(), known, n=1)
    advice = f"did you mean `{nearest[0]}`? " if nearest else ""
    return ConfigError(
        f"unknown embedding provider: `{name}`",
        key="provider",
        hint=f"{advice}this version knows {', '.join(known)}",
    )
