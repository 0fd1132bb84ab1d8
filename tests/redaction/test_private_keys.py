"""Private keys, whole and in pieces."""

from __future__ import annotations

import random
import string

import pytest
from tests.redaction.samples import BASE64, some

from plainmind.redaction.engine import Redactor

REDACTOR = Redactor(key=b"k")
LINES = [some(BASE64, 64)(random.Random(line)) for line in range(8)]
BODY = "\n".join(LINES)


def remains(text):
    """The lines of the key that are still readable in the copy."""
    copy = REDACTOR.redact(text).text
    return [line for line in LINES if line[:20] in copy or line[-20:] in copy]


@pytest.mark.parametrize(
    "name", ["RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY",
             "PGP PRIVATE KEY BLOCK", "DSA PRIVATE KEY"],
)  # fmt: skip
def test_a_block_is_hidden_with_its_borders(name):
    text = f"see\n-----BEGIN {name}-----\n{BODY}\n-----END {name}-----\nend"
    redacted = REDACTOR.redact(text)

    assert [found.kind for found in redacted.found] == ["private-key"]
    assert redacted.text.replace(redacted.found[0].mark, "") == "see\n" + "\n" * 9 + "\nend"


def test_a_block_cut_off_at_its_end_is_hidden_as_far_as_it_goes():
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n\nThis is what I found."

    assert remains(text) == []
    assert REDACTOR.redact(text).text.endswith("\n\nThis is what I found.")


def test_a_block_whose_last_line_is_torn_is_hidden_to_the_end_of_the_text():
    copy = REDACTOR.redact(f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\nAb3dE").text

    assert "Ab3dE" not in copy


def test_a_block_cut_off_at_its_beginning_is_hidden_too():
    text = f"and the rest of it:\n{BODY}\nAb3=\n-----END RSA PRIVATE KEY-----\nbye"

    assert remains(text) == []
    assert REDACTOR.redact(text).text.startswith("and the rest of it:\n[redacted:private-key#")


def test_two_blocks_of_which_the_first_has_no_end():
    text = f"-----BEGIN PRIVATE KEY-----\n{BODY}\nthen\n-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----"

    assert remains(text) == []
    assert len(REDACTOR.redact(text).found) == 2


def test_an_end_far_behind_does_not_swallow_what_lies_between():
    prose = "nothing secret here. " * 3000
    text = f"-----BEGIN PRIVATE KEY-----\n{BODY}\n{prose}\n{BODY}\n-----END PRIVATE KEY-----"

    assert remains(text) == []
    assert prose[:-1] in REDACTOR.redact(text).text


@pytest.mark.parametrize("prefix", ["> ", "| ", "+", "    ", "# ", '"'])
def test_a_block_in_a_quotation_a_diff_or_a_comment_is_hidden(prefix):
    block = ["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"]

    assert remains("\n".join(prefix + line for line in block)) == []
    assert remains("\n".join(prefix + line for line in block[:-1])) == []
    assert remains("\n".join(prefix + line for line in block[1:])) == []


def test_a_block_on_one_line_with_escaped_line_breaks_is_hidden():
    escaped = "\\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----", ""])
    torn = escaped[: len(escaped) // 2]

    assert remains(f'{{"private_key": "{escaped}"}}') == []
    assert remains(f'{{"private_key": "{torn}"}}') == []
    assert remains("\\n".join([*LINES, "-----END PRIVATE KEY-----"])) == []


def test_headers_of_an_encrypted_key_belong_to_it():
    text = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{BODY}"

    assert remains(text) == []


@pytest.mark.parametrize(
    "head", ["MIIEowIBAAKCAQEA", "MIIEvQIBADANBgkqhkiG", "MHcCAQEE", "b3BlbnNzaC1rZXktdjEA"]
)
def test_a_key_without_borders_is_known_by_its_beginning(head):
    assert remains(f"key material: {head}{BODY}\nand so on") == []


def test_a_putty_key_loses_its_private_lines_only():
    text = f"PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 8\n{BODY}\nPrivate-MAC: 00"

    assert remains(text) == []
    assert "Public-Lines: 1\nAAAA\n" in REDACTOR.redact(text).text
    assert REDACTOR.redact("Private-Lines: 1\nabc\n").found == ()


@pytest.mark.parametrize(
    "text",
    [
        "The file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
        "Look for -----BEGIN PRIVATE KEY----- in the file.",
        "Look for -----END PRIVATE KEY----- in the file, not for anything else that is much longer.",
        "Words enough to look behind for a key, but no -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nshort",
        "-----BEGIN CERTIFICATE-----\n" + BODY + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + BODY + "\n-----END PUBLIC KEY-----",
        "PRIVATE KEY",
        "MHcCAQ" + string.ascii_letters,
    ],
)
def test_talk_about_keys_and_public_ones_stay(text):
    assert REDACTOR.redact(text).text == text
