"""The few settings whose value is itself a list or table of objects: paths, provider keys, scope rules."""

from __future__ import annotations

import re
from collections.abc import Mapping

from plainmind.base.value import field, value
from plainmind.config.kinds import Kind, Unfit, is_clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class ExtraPath:
    """More Markdown to index: a file or a folder, absolute or relative to the workspace."""

    path: str
    pattern: str | None = None
    name: str | None = None
    scope: str | None = None  # "shared": also for groups and other people


@value
class ProviderAccess:
    """How to reach one provider. The key may be a reference, `env:NAME`."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


@value
class ScopeRule:
    """Who may see the memory; a condition that is None matches everything."""

    action: str  # "allow" or "deny"
    chat_type: str | None = None
    channel: str | None = None
    key_prefix: str | None = None


class Paths(Kind):
    """A list of paths, each as text or as {path, pattern, name, scope}."""

    expected = "a list of paths, each as text or as {path, pattern, name, scope: private or shared}"

    def _read(self, value: Any) -> tuple[ExtraPath, ...]:
        if not isinstance(value, list | tuple):
            raise Unfit(self.expected)
        return tuple(dict.fromkeys(self._read_one(item) for item in value))

    def _read_one(self, item: Any) -> ExtraPath:
        if isinstance(item, ExtraPath):
            return item
        if isinstance(item, str):
            item = {"path": item}
        found = _text_fields(item, ("path", "pattern", "name", "scope"), self.expected)
        # A misspelt scope must not be taken for another one.
        if found["path"] is None or found["scope"] not in {None, "private", "shared"}:
            raise Unfit(self.expected)
        return ExtraPath(found["path"], found["pattern"], found["name"], found["scope"])

    def _from_text(self, text: str) -> Any:
        if text.startswith("["):
            return super()._from_text(text)
        return self._read([path.strip() for path in text.split(",")])

    def _to_json(self, value: tuple[ExtraPath, ...]) -> list[Any]:
        return [
            _without_none(
                {"path": extra.path, "pattern": extra.pattern, "name": extra.name, "scope": extra.scope}
            )
            if extra.pattern or extra.name or extra.scope
            else extra.path
            for extra in value
        ]


class Providers(Kind):
    """An object of providers by name, each {apiKey, baseUrl}."""

    expected = "an object of providers by name, each {apiKey, baseUrl} of texts"

    def _read(self, value: Any) -> dict[str, ProviderAccess]:
        if not isinstance(value, Mapping) or not all(is_clean_text(name) for name in value):
            raise Unfit(self.expected)
        return {name: self._read_one(access) for name, access in value.items()}

    def _read_one(self, access: Any) -> ProviderAccess:
        if isinstance(access, ProviderAccess):
            return access
        found = _text_fields(access, ("apiKey", "baseUrl"), self.expected)
        return ProviderAccess(api_key=found["apiKey"], base_url=found["baseUrl"])

    def _to_json(self, value: Mapping[str, ProviderAccess]) -> dict[str, Any]:
        return {
            name: _without_none({"apiKey": p.api_key, "baseUrl": p.base_url}) for name, p in value.items()
        }


class Rules(Kind):
    """A list of rules about who may see the memory; the first that matches decides."""

    expected = "a list of rules {action: allow or deny, match: {chatType, channel, keyPrefix}}"

    def _read(self, value: Any) -> tuple[ScopeRule, ...]:
        if not isinstance(value, list | tuple):
            raise Unfit(self.expected)
        return tuple(self._read_one(rule) for rule in value)

    def _read_one(self, rule: Any) -> ScopeRule:
        if isinstance(rule, ScopeRule):
            return rule
        if not isinstance(rule, Mapping) or not set(rule) <= {"action", "match"}:
            raise Unfit(self.expected)
        action = rule.get("action")
        if not isinstance(action, str) or not re.fullmatch("allow|deny", action):
            raise Unfit(self.expected)
        # A misspelt condition must not turn a narrow rule into one that matches everybody.
        found = _text_fields(rule.get("match", {}), ("chatType", "channel", "keyPrefix"), self.expected)
        return ScopeRule(action, found["chatType"], found["channel"], found["keyPrefix"])

    def _to_json(self, value: tuple[ScopeRule, ...]) -> list[Any]:
        return [
            {
                "action": rule.action,
                "match": _without_none(
                    {"chatType": rule.chat_type, "channel": rule.channel, "keyPrefix": rule.key_prefix}
                ),
            }
            for rule in value
        ]


def _text_fields(value: Any, names: tuple[str, ...], expected: str) -> dict[str, str | None]:
    """Take the named texts of an object, None for those left out; anything else in it is unfit."""
    if not isinstance(value, Mapping) or not set(value) <= set(names):
        raise Unfit(expected)
    if not all(text is None or is_clean_text(text) for text in value.values()):
        raise Unfit(expected)
    return {name: value.get(name) for name in names}


def _without_none(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in values.items() if text is not None}
