"""The embedders of one memory, made from its settings: who embeds, with whose key, where, and who may take over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import RLock

from plainmind.base.errors import ConfigError, EmbeddingError, PlainmindError
from plainmind.base.model import EmbedderIdentity, Progress, ProgressCallback
from plainmind.base.value import field, replace, value
from plainmind.config.load import Loaded, home_folder, referenced_variable, resolve_secret
from plainmind.embed.cache import CachedEmbedder, SqliteEmbeddingCache
from plainmind.embed.protocol import (
    AUTO,
    COMPUTED_HERE,
    KEY_VARIABLES,
    Embedder,
    EmbeddingSettings,
    FullEmbedder,
    Withheld,
    create_embedder,
)
from plainmind.embed.succession import Choice, KeyFound, LocalModel, Provider, Succession, choose
from plainmind.files.safe_open import expand_user
from plainmind.guests.remote.config import RemoteConfig, RemoteSettings
from plainmind.memory.translation import CacheValues, with_origin_of_provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.model import IndexFingerprint, SyncReport
    from plainmind.config.settings import Settings
    from plainmind.guests.remote.batch_jobs import BatchingEmbedder
    from plainmind.guests.remote.embedder import RemoteEmbedder
    from plainmind.guests.remote.ledger import Ledger, Usage
    from plainmind.memory.doctor import Check
    from plainmind.memory.index import Index
    from plainmind.memory.providers import Asked, EmbeddingStatus


_ALL_DAYS = 400  # as long as the ledger remembers


class Providers:
    """Makes embedders when they are first needed. `buried` says whether a text was forgotten."""

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        *,
        home: str,
        cache: CacheValues,
        buried: Callable[[str], bool],
    ) -> None:
        self._loaded = loaded
        self._settings = loaded.settings
        self._home = home
        self._cache_values = cache
        self._environ = environ
        self._buried = buried
        self._making = RLock()
        self._batching: BatchingEmbedder | None = None
        self.progress: ProgressCallback | None = None  # of whoever waits for a sync, and so for a download

    @cached_property
    def choice(self) -> Choice:
        """Which provider was chosen, and why."""
        return choice_of(self._loaded, self._environ)

    @cached_property
    def cache(self) -> SqliteEmbeddingCache | None:
        """What remembers vectors that took long or cost money."""
        values = self._cache_values
        if not values.enabled:
            return None
        return SqliteEmbeddingCache(
            values.path, max_entries=values.max_entries, max_bytes=values.max_bytes, buried=self._buried
        )

    @property
    def used_cache(self) -> SqliteEmbeddingCache | None:
        """The cache, where computing is not faster than looking up."""
        return None if self.choice.provider in COMPUTED_HERE else self.cache

    @property
    def chosen(self) -> Provider:
        """The provider that was chosen, whether it works or not."""
        return self.succession.chosen

    def answering(self, made: EmbedderIdentity | None) -> Embedder:
        """Who answers questions to an index that was made with an embedder: vectors of two models never meet."""
        return self.succession.answering(made)

    @property
    def confirm_above_usd(self) -> float:
        """What a sync may cost before it needs a yes."""
        return self._settings.section(RemoteConfig).confirm_above_usd

    def sync(self, index: Index, asked: Asked) -> SyncReport:
        """Bring the index up to date. A failing provider never costs an index that works."""
        from plainmind.guests.remote.provider_sync import sync_with

        return sync_with(index, self, asked)

    def status(self, index: Index, made: IndexFingerprint | None, *, deep: bool) -> EmbeddingStatus:
        """Facts for `status`. Asks a provider on another machine only when `deep`, for one vector."""
        from plainmind.guests.remote.provider_sync import status_of

        return status_of(self, index, made, deep=deep)

    def examine(self) -> Iterator[Check]:
        """What `doctor` says of the provider."""
        from plainmind.guests.remote.provider_sync import examine

        return examine(self)

    def forget_uploads(self, hashes: Sequence[str]) -> None:
        """Have the provider delete what was uploaded to it for a job. Raises EmbeddingError while that is not sure."""
        if self.batching is not None:
            self.batching.jobs.forget(hashes)

    @cached_property
    def ledger(self) -> Ledger:
        """What is owed to remote providers, and what is known about them; shared by all agents and workspaces."""
        from plainmind.guests.remote.ledger import Ledger

        return Ledger(self._ledger_path)

    @property
    def _ledger_path(self) -> str:
        return os.path.join(self._home, "remote.sqlite")

    @property
    def succession(self) -> Succession:
        """Who embeds, and who takes over."""
        with self._making:
            return self._succession

    @cached_property
    def _succession(self) -> Succession:
        chosen, fallback = self.choice.provider, self._settings.fallback
        needless = fallback in {chosen, "none"} or chosen in COMPUTED_HERE
        return Succession(
            self._made(chosen, chosen=True),
            fallback=None if needless else lambda: self._made(fallback, chosen=False),
            former=self._former,
        )

    @property
    def batching(self) -> BatchingEmbedder | None:
        """What leaves texts to jobs of the chosen provider, where these are switched on or still running."""
        _ = self.succession
        return self._batching

    def standing_in(self, made: EmbedderIdentity | None) -> dict[str, str] | None:
        """Say who embeds in whose place, and why, when an index was made by the fallback."""
        succession = self.succession
        if not succession.is_fallback(made) or succession.fallback is None:
            return None
        chosen = succession.chosen
        reason = chosen.fell_out()
        return {
            "from": chosen.name,
            "to": succession.fallback.name,
            "reason": f"{chosen.name} failed when the index was made" if reason is None else str(reason),
        }

    def usage(self) -> dict[str, Any]:
        """Requests, tokens and dollars, about, of today and of all days that are remembered; of all providers."""
        rows = self.ledger.usage(days=_ALL_DAYS)
        today = {(usage.day, usage.key) for usage in self.ledger.usage()}
        return {
            "today": _sum([usage for usage in rows if (usage.day, usage.key) in today]),
            "total": _sum(rows),
            "maxTokensPerDay": self._settings.section(RemoteConfig).max_tokens_per_day,
        }

    def close(self) -> None:
        """Let go of everything that was opened."""
        for name in ("_succession", "cache", "ledger"):
            part = vars(self).get(name)
            if part is not None:
                part.close()

    def _made(self, name: str, *, chosen: bool) -> Provider:
        try:
            if name in KEY_VARIABLES:
                return self._remote(name, chosen=chosen)
            return self._of_this_machine(name, chosen=chosen)
        except ConfigError as error:
            raise (with_origin_of_provider(error, self._loaded) if chosen else error) from error

    def _of_this_machine(self, name: str, *, chosen: bool) -> Provider:
        """Make a provider that runs in this process, or one of another package."""
        settings = self._settings
        model = (
            model_for(name, settings) if chosen else (settings.local.model_path if name == "local" else None)
        )
        wanted = EmbeddingSettings(
            provider=name,
            model=model,
            model_cache_dir=model_folder(settings, self._home),
            downloading=self._downloading,
        )
        bare = create_embedder(name, wanted)
        embedder: Embedder = bare
        if name not in COMPUTED_HERE and self.cache is not None:
            embedder = CachedEmbedder(bare, self.cache)
        return Provider(name, model or "", embedder, bare=bare)

    def _downloading(self, step: Progress) -> None:
        if self.progress is not None:
            self.progress(replace(step, label=f"downloading {step.label}"))

    def _remote(self, name: str, *, chosen: bool, model: str | None = None) -> Provider:
        access = access_to(name, self._loaded, self._environ, chosen=chosen)
        if not access.may_be_asked:
            missing = EmbeddingError(
                f"{name} cannot be asked: {access.found.problem}",
                hint="set the variable, or name another one in `remote.apiKey`: `env:MY_KEY`",
            )
            return _silent(name, self._settings.model or "", missing)
        if model is None and chosen:
            model = model_for(name, self._settings)
        settings = remote_settings(self._settings, access, chosen=chosen, model=model)
        bare, asked = self._asking(name, settings, chosen=chosen)
        embedder: Embedder = asked if self.cache is None else CachedEmbedder(asked, self.cache)
        return Provider(name, bare.key.model, embedder, bare=bare, remote=bare)

    def _asking(
        self, name: str, settings: RemoteSettings, *, chosen: bool
    ) -> tuple[RemoteEmbedder, FullEmbedder]:
        if not chosen or self.cache is None or not (settings.batch.enabled or self._has_jobs()):
            from plainmind.guests.remote.embedder import create_remote

            bare = create_remote(name, settings, self.ledger)
            return bare, bare
        from plainmind.guests.remote.batch_jobs import create_batching

        folder = os.path.join(self._home, "batches")
        self._batching = create_batching(name, settings, self.ledger, cache=self.cache, folder=folder)
        return self._batching.embedder, self._batching

    def _has_jobs(self) -> bool:
        """Whether a job was left running, by settings that were other ones then."""
        if not os.path.exists(self._ledger_path):
            return False
        return bool(self.ledger.jobs())

    def _former(self, made: EmbedderIdentity) -> Embedder | None:
        """Make the embedder that an index of other settings was made with, if that can be done with these."""
        try:
            if made.provider == "builtin":
                builtin = create_embedder("builtin", EmbeddingSettings(provider="builtin"))
                return builtin if builtin.identity.agrees_with(made) else None
            if made.provider not in KEY_VARIABLES:
                return None
            for chosen in (True, False):
                provider = self._remote(made.provider, chosen=chosen, model=made.model)
                if provider.makes(made):
                    return provider
        except PlainmindError:
            return None  # it needs something that is no longer set
        return None


def _silent(name: str, model: str, missing: EmbeddingError) -> Provider:
    """Stand for a provider that cannot even be asked; everything else works, and this says why it does not."""
    silent = Withheld(None, missing)
    return Provider(name, model, silent, bare=silent)


def _sum(rows: list[Usage]) -> dict[str, Any]:
    return {
        "requests": sum(usage.requests for usage in rows),
        "failures": sum(usage.failures for usage in rows),
        "tokens": sum(usage.tokens for usage in rows),
        "costUsd": round(sum(usage.cost for usage in rows), 6),
    }


# --- how each provider can be reached ---


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
    return LocalModel(path, exists=os.path.exists(expand_user(path)))


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
