"""Hundreds of forms in which people and programs write a password down (`forms.txt`): each hides what is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind.redaction.engine import Redactor

REDACTOR = Redactor(key=b"k")
PASSWORDS = ("Tr0ub4dor&3", "Paddle?drache88", "kX9-mQ2-vT7p", "qv7ykd2m9xlp")


def sections():
    """The forms by what they have in common; `{}` is the place of the password, and `\\n` is a line break."""
    found = {}
    for line in Path(__file__).with_name("forms.txt").read_text("utf-8").splitlines():
        if line.startswith("=== "):
            forms = found.setdefault(line[4:], [])
        else:
            forms.append(line)
    return found


FORMS = sections()


@pytest.mark.parametrize("section", FORMS)
def test_a_made_up_password_is_hidden_in_every_form(section):
    seen = []
    for form in FORMS[section]:
        text = form.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")
        for password in PASSWORDS:
            copy = REDACTOR.without_secrets(text.replace("{}", password))
            if password[:6] in copy or password[-6:] in copy:
                seen.append(f"{form}: {copy}")

    assert seen == []


def test_there_are_hundreds_of_forms():
    assert len(FORMS) == 6
    assert sum(map(len, FORMS.values())) > 700


@pytest.mark.parametrize(
    "text",
    [
        "Please sign in with Office365 or with your Google account.",
        "The archive is encrypted with AES256 and signed with ED25519.",
        "User: https://on.example.com/jkpTVH4zkTVHc2uHA",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c is the address.",
        "We log in as ada using OAuth2 and the usual browser.",
        "root: the folder above all others, admin: whoever may write there.",
        "The code est passed to the printer, page 2024.",
        "Le code postal est 75011, le code source est libre.",
        "Connect to the VPN with WireGuard, then open port 51820.",
        "He opened with the Sicilian, e4 c5, and lost on move 42.",
        "Unlock with a fingerprint, or protected with glass of 4 mm.",
        "An echo is heard | then silence, as the printf manual says.",
        "community college 2023, key signature of 3 sharps",
    ],
)
def test_ordinary_sentences_that_begin_alike_stay_as_they_are(text):
    assert REDACTOR.without_secrets(text) == text
