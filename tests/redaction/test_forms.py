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
        "My login is ada1985, and our login uses OAuth2 with Keycloak24.",
        "The magic word is please, and the code word for the launch was bluebird.",
        "If the installer asks, answer yes, then enter 8080.",
        '{"name": "ada", "p": "paragraph", "u": "underline"}',
        "[10:32] ana: which token budget?\n[10:33] leo: 40000",
        "root: the folder above all others, admin: whoever may write there.",
        "The code est passed to the printer, page 2024.",
        "Le code postal est 75011, le code source est libre.",
        "Connect to the VPN with WireGuard, then open port 51820.",
        "He opened with the Sicilian, e4 c5, and lost on move 42.",
        "Unlock with a fingerprint, or protected with glass of 4 mm.",
        "An echo is heard | then silence, as the printf manual says.",
        "community college 2023, key signature of 3 sharps",
        "bypass = True, compass: N42W, overpass=2 and the trespass: 3rd.",
        "The film opens with a long shot of 1968, and the door opens with a creak.",
        "The root is 2.41, the admin with 20 years in the house is away.",
        "Export it as `${DB_PASSWORD:?set it first}` and read src/app.com:main:app.",
        "| pin | function |\n| --- | --- |\n| 17 | reset |\n| 22 | clock |",
    ],
)
def test_ordinary_sentences_that_begin_alike_stay_as_they_are(text):
    assert REDACTOR.without_secrets(text) == text


@pytest.mark.parametrize("password", ["Kettle=sommer63", "kettle613=Lantern"])
@pytest.mark.parametrize(
    "form", ["password: {}", "pw {}", "Passwort: {}", "login: admin\npassword: {}", "password? {}"]
)
def test_an_equals_sign_within_a_password_does_not_cut_it(form, password):
    copy = REDACTOR.without_secrets(form.format(password))

    assert password[:5] not in copy
    assert password[-5:] not in copy


def test_the_type_of_a_variable_is_no_part_of_its_value():
    assert REDACTOR.without_secrets('password: String = "Tr0ub4dor&3"').startswith("password: String = ")


@pytest.mark.parametrize("sign", ["&#33;", "&#x21;", "!"])
def test_signs_that_are_written_as_entities_belong_to_a_password(sign):
    copy = REDACTOR.without_secrets(f"password: Winter207{sign} and more")

    assert "Winter207" not in copy
    assert copy.endswith("] and more")


@pytest.mark.parametrize(
    "text", ["card,pin\nvisa,4821\n", "| card | pin |\n| --- | --- |\n| visa | 4821 |\n"]
)
def test_a_pin_is_hidden_in_the_column_that_is_named_so(text):
    assert "4821" not in REDACTOR.without_secrets(text)


@pytest.mark.parametrize(
    "form",
    [
        "I changed the pin from 1111 to {}",
        "PIN no. {}",
        "PIN for the alarm panel by the front door of the house is {}",
        "A: le pin ?\nB: {}",
        "- PIN\n  - {}",
        "pin_code={}",
        "alarm code: {}",
    ],
)
def test_a_pin_is_hidden_wherever_it_is_called_one(form):
    assert "4821" not in REDACTOR.without_secrets(form.format("4821"))
