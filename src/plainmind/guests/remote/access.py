"""How each embedding provider can be reached: whose key, at which address, and which provider that makes the choice."""

from __future__ import annotations

import os
from collections.abc import Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.value import field, value
from plainmind.config.load import Loaded, home_folder, referenced_variable, resolve_secret
from plainmind.embed.protocol import AUTO, KEY_VARIABLES, EmbeddingSettings, create_embedder
from plainmind.embed.succession import Choice, KeyFound, LocalModel, choose
from plainmind.guests.remote.config import RemoteConfig, RemoteSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.config.settings import Settings

# The provider that `remote.baseUrl` and `remote.apiKey` are meant for when `provider` is `auto`.
_FIRST = next(iter(KEY_VARIABLES))


@value
class Access:
    """Where a provider is, and the key for it; `found` says where that comes from.

    A server of one's own may need no key; but a key that was named and is not there is never left out.
    """

    base_url: str | None
    key: str | None = field(repr=False)
    found: KeyFound
    may_be_asked: bool = True


def choice_of(loaded: Loaded, environ: Mapping[str, str]) -> Choice:
    """Say which provider embeds, and why."""
    settings = loaded.settings
    if not settings.store.vector_enabled:
        return Choice("none", f"`store.vector.enabled` is false, by {loaded.origins['store.vector.enabled']}")
    keys = {}
    if settings.provider == AUTO:
        keys = {name: access_to(name, loaded, environ, chosen=name == _FIRST).found for name in KEY_VARIABLES}
    return choose(
        settings.provider,
        requested_by=str(loaded.origins["provider"]),
        local=_local_model(settings, environ),
        keys=keys,
    )


def access_to(name: str, loaded: Loaded, environ: Mapping[str, str], *, chosen: bool) -> Access:
    """Find the address and the key of a remote provider. `remote.*` counts for the chosen provider alone.

    A key belongs to the address that it was given for. One that stands in the environment, or beside another address
    in `models.providers`, is never sent to the one in `remote.baseUrl`: name it in `remote.apiKey` to do so.
    """
    settings = loaded.settings
    remote = settings.section(RemoteConfig)
    own = settings.provider_access.get(name)
    own_url = own.base_url if own else None
    base_url = (remote.base_url if chosen else None) or own_url
    asked: list[tuple[str | None, str]] = []
    if chosen:
        asked.append((remote.api_key, _place(loaded, "remote.apiKey", "remote.apiKey")))
    if own is not None and _same_place(base_url, own_url, name):
        asked.append((own.api_key, _place(loaded, "models.providers", f"models.providers.{name}.apiKey")))
    problem = None
    for written, origin in asked:
        try:
            key = resolve_secret(written, environ)
        except ConfigError as error:
            problem = problem or str(error)
            continue
        if key is not None and not key.strip():
            problem = problem or f"the key of {origin} is empty"
        elif key is not None:
            variable = referenced_variable(written or "")
            place = f"{variable}, named by {origin}" if variable else origin
            return Access(base_url, key, KeyFound(place, is_in_settings=True))
    if problem is None and _same_place(base_url, None, name):
        for variable in KEY_VARIABLES[name]:
            if environ.get(variable, "").strip():
                return Access(base_url, environ[variable], KeyFound(f"the environment variable {variable}"))
    has_header = chosen and bool(remote.headers)
    may_be_asked = problem is None and (has_header or not _same_place(base_url, None, name))
    found = KeyFound(
        None,
        problem or _why_none(base_url, name),
        is_named=problem is not None or base_url is not None,
        is_in_settings=problem is not None,
    )
    return Access(base_url, None, found, may_be_asked)


def remote_settings(settings: Settings, access: Access, *, chosen: bool, model: str | None) -> RemoteSettings:
    """Translate the settings of a remote provider; model, dimensions and headers are the chosen one's alone."""
    remote = settings.section(RemoteConfig)
    return RemoteSettings(
        base_url=access.base_url,
        api_key=access.key,
        headers=remote.headers if chosen else {},
        model=model,
        dims=settings.output_dimensionality if chosen else None,
        batch=remote.batch,
        concurrency=remote.concurrency,
        query_timeout_s=remote.query_timeout_ms / 1000,
        batch_timeout_s=remote.document_timeout_ms / 1000,
        max_tokens_per_day=remote.max_tokens_per_day,
        # Only the user can set an address: a project file may not.
        allow_private=access.base_url is not None,
        proxy=remote.proxy,
    )


def model_for(name: str, settings: Settings) -> str | None:
    """Say which model the chosen provider is asked for; None is its usual one.

    Beside `auto`, a model that is known to be another provider's was written for that one.
    """
    if name == "local":
        return settings.local.model_path or settings.model
    if settings.provider != AUTO or settings.model is None or name not in KEY_VARIABLES:
        return settings.model if settings.provider != AUTO else None
    from plainmind.guests.remote.wire import wire_for

    bare = settings.model.removeprefix("models/")
    others = (wire_for(other, RemoteSettings()) for other in KEY_VARIABLES if other != name)
    return None if any(bare in wire.known_dims for wire in others) else settings.model


def _local_model(settings: Settings, environ: Mapping[str, str]) -> LocalModel:
    path = settings.local.model_path
    if path is None:
        return LocalModel()
    if ":" in path.split("/", 1)[0]:  # `hf:…`: there once it was downloaded
        folder = model_folder(settings, home_folder(environ))
        wanted = EmbeddingSettings(provider="local", model=path, model_cache_dir=folder)
        return LocalModel(path, exists=create_embedder("local", wanted).is_ready)
    return LocalModel(path, exists=os.path.exists(os.path.expanduser(path)))


def model_folder(settings: Settings, home: str) -> str:
    """Where downloaded models are kept."""
    return settings.local.model_cache_dir or os.path.join(home, "models")


def _same_place(base_url: str | None, other: str | None, name: str) -> bool:
    """Whether both are the same scheme, host and port; None is the provider's own address."""
    if base_url == other:
        return True
    from plainmind.guests.net.address import is_same_place
    from plainmind.guests.remote.wire import wire_for

    default = wire_for(name, RemoteSettings()).default_base_url
    return is_same_place(base_url, other, default, settings="remote")


def _why_none(base_url: str | None, name: str) -> str:
    names = " and ".join(KEY_VARIABLES[name])
    if _same_place(base_url, None, name):
        return f"no key: {names} {'is' if len(KEY_VARIABLES[name]) == 1 else 'are'} not set"
    return f"no key for its address: {names} count for {name} itself; name one in `remote.apiKey`"


def _place(loaded: Loaded, key: str, spelled: str) -> str:
    return f"`{spelled}`, {loaded.origins[key]}"
