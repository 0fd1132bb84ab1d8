"""A box of tools whose every answer is held against its schema."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator


class CheckedTools:
    """Calls tools as a model does."""

    def __init__(self, box, tools):
        self.box = box
        self._shapes = {tool.name: Draft202012Validator(tool.output_schema) for tool in tools}

    def call(self, name, arguments="{}"):
        answer = self.box.call(name, arguments)
        json.dumps(answer.content)
        if name in self._shapes:
            self._shapes[name].validate(answer.content)
        return answer

    def ok(self, name, **arguments):
        answer = self.call(name, arguments)
        assert not answer.is_error, answer.text
        return answer
