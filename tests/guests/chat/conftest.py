"""A model that talks to a scripted server, in both languages."""

from __future__ import annotations

import pytest
from tests.support.scripted_chat_model import KEY, scripted_model

from plainmind.guests.chat.endpoint import EndpointModel, dialect_of
from plainmind.guests.chat.model import ChatModelSettings
from plainmind.guests.net.failures import RetryPolicy

QUICK = RetryPolicy(first_pause_s=0.001, longest_pause_s=0.001)


@pytest.fixture(params=("openai", "anthropic"))
def dialect(request):
    return request.param


@pytest.fixture
def serve():
    """Begin a scripted server; what talks to it, and the server."""
    contexts, models = [], []

    def begin(dialect, script, **settings):
        context = scripted_model(script)
        server = context.__enter__()
        contexts.append(context)
        url = server.openai_url if dialect == "openai" else server.anthropic_url
        given = {"model": "larch-1", "base_url": url, "api_key": KEY, "allow_private": True, **settings}
        models.append(EndpointModel(dialect_of(dialect), ChatModelSettings(**given), policy=QUICK))
        return models[-1], server

    yield begin
    for model in models:
        model.close()
    for context in contexts:
        context.__exit__(None, None, None)
