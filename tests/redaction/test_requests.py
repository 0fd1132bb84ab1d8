"""What requests carry: headers, cookies, addresses; and secrets known by their shape."""

from __future__ import annotations

import base64
import random

import pytest
from tests.redaction.samples import BASE64, DASHED, HEX, PLAIN, TYPES, some

from plainmind.redaction.engine import Redactor

REDACTOR = Redactor(key=b"k")
RANDOM = random.Random("requests")
TOKEN = some(DASHED, 40)(RANDOM)
PAIR = base64.b64encode(b"admin:hunter22x").decode()


def hidden(text):
    return [text[found.start : found.end] for found in REDACTOR.redact(text).found]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer {}", TOKEN),
        ("authorization: {}", TOKEN),
        ("-H 'Authorization: Bearer {}'", TOKEN),
        ('"Authorization": "Bearer {}"', TOKEN),
        ("Proxy-Authorization: Basic {}", PAIR),
        ("headers['Authorization'] = 'token {}'", TOKEN),
        ("set_header('Authorization', 'Bearer {}')", TOKEN),
        ("use bearer {} for now", TOKEN),
        ("it says Basic {} there", PAIR),
        ('"auth": "{}"', PAIR),
        ("_auth={}", PAIR),
        ("Cookie: {}", "sid=a1b2c3d4e5f6; theme=dark"),
        ("Set-Cookie: sid={}; Path=/; HttpOnly", "a1b2c3d4e5f6"),
        ("Set-Cookie: sid={}", "a1b2c3d4e5f6"),
        ("cookie='{}'", "sid=a1b2c3d4e5f6"),
        ("curl --cookie '{}' https://example.com", "sid=a1b2c3d4e5f6"),
    ],
)
def test_a_credential_in_a_header_is_hidden(text, secret):
    assert hidden(text.replace("{}", secret)) == [secret]


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Required for all requests",
        "authorization: authorization: authorization",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <your-token-1234>",
        "the bearer authentication scheme is described below",
        "bearer internationalisation",
        "basic understanding of things",
        "basic authentication",
        "Basic " + base64.b64encode(b"user:password").decode(),
        "Basic " + base64.b64encode(b"no pair at all").decode(),
        "Basic " + base64.b64encode(bytes(range(128, 158))).decode(),
        "Basic aaaaaaaaaaaaa",
        "authorization: ééééééééé1",
        "Cookie: chocolate chip",
        "cookie: theme=dark",
        "Set-Cookie: theme=dark; Max-Age=31536000",
        "author: somebody.else2",
    ],
)
def test_talk_about_headers_stays(text):
    assert hidden(text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("postgres://app:{}@db:5432/x", "database-password"),
        ("postgresql+asyncpg://app:{}@db/x", "database-password"),
        ("mongodb+srv://app:{}@cluster.example.net/?w=1", "database-password"),
        ("redis://:{}@cache:6379", "database-password"),
        ("https://bob:{}@example.com/path", "url-password"),
        ("git clone https://oauth2:{}@example.com/a.git", "url-password"),
    ],
)
@pytest.mark.parametrize("password", ["hunter22", "p%40ss", "a@b:c!", "1234"])
def test_the_password_of_an_address_is_hidden_and_the_address_stays(text, kind, password):
    redacted = REDACTOR.redact(text.replace("{}", password))

    assert [found.kind for found in redacted.found] == [kind]
    assert redacted.text == text.replace("{}", redacted.found[0].mark)


@pytest.mark.parametrize(
    "text",
    [
        "http://user:password@example.com",
        "http://${USER}:${PASS}@example.com",
        "http://<user>:<pass>@example.com",
        "http://localhost:8080/path@v2",
        "http://localhost:8080 and bob@example.com",
        "cvs://:pserver:anoncvs@example.com",
        "ssh://git@example.com:22/a.git",
        "see :// for it",
    ],
)
def test_addresses_without_a_password_stay(text):
    assert hidden(text) == []


@pytest.mark.parametrize(
    "number",
    ["4242424242424242", "4012 8888 8888 1881", "5555-5555-5555-4444", "378282246310005", "3782 822463 10005",
     "6011111111111117", "3530111333300000", "30569309025904", "2223003122003222", "6200000000000005",
     "4000056655665556", "4222222222222"],
)  # fmt: skip
def test_card_numbers_with_a_right_check_digit_are_hidden(number):
    assert hidden(f"paid with {number} today") == [number]


@pytest.mark.parametrize(
    "text",
    ["4242424242424241", "order 1234567890123452", "0.4242424242424242", "x4242424242424242", "4242424242424242.5",
     "4444 4444 4444 4444 4444 4444", "1,4242424242424242", "id-4242424242424242", "2026-02-10 10:00:00",
     "0000000000000000", "5000000000000009"],
)  # fmt: skip
def test_other_long_numbers_stay(text):
    assert hidden(text) == []


def test_the_check_digit_of_a_card_is_the_last_one():
    assert hidden("4111111111111111") == ["4111111111111111"]
    assert not any(hidden(f"411111111111111{digit}") for digit in "023456789")


def test_of_thousands_of_numbers_those_with_the_right_check_digit_are_hidden_whatever_stands_around():
    rng = random.Random("cards")
    wrong = [f"{rng.choice(['4111 1111 1111', '378282246310', '5555-5555-5555'])}" for _ in range(3_000)]
    right = {77: "4111 1111 1111 1111", 1_502: "378282246310005", 2_999: "5555555555554444"}
    numbers = [right.get(at, f"{number} 0000"[:19]) for at, number in enumerate(wrong)]

    assert hidden("\n".join(numbers)) == list(right.values())


@pytest.mark.parametrize(
    ("template", "alphabet", "count"),
    [
        ("https://hooks.slack.com/workflows/{}", PLAIN, 40),
        ("https://x.webhook.office.com/webhookb2/{}", PLAIN, 80),
        ("https://s3.example.com/x?X-Amz-Signature={}&a=b", HEX, 64),
        ("fm2_{}", BASE64, 100),
        ("ops_eyJ{}", BASE64, 200),
        ("glc_{}", BASE64, 80),
        ("access_token$production${}", HEX, 16),
    ],
)
def test_a_secret_is_known_by_what_stands_around_it(template, alphabet, count):
    secret = some(alphabet, count)(RANDOM)
    text = template.format(secret) + ("$" + some(HEX, 32)(RANDOM) if "$" in template else "")

    assert secret not in REDACTOR.redact(f"see {text} ok").text


def test_hashes_and_identifiers_stay():
    text = (
        f"commit {some(HEX, 40)(RANDOM)} sha256:{some(HEX, 64)(RANDOM)} {some(PLAIN, 24)(RANDOM)} "
        "sk-learn-something-that-is-quite-long pa-ris-is-a-city-and-this-is-a-long-slug-of-words "
        "https://example.com/a/very/long/path-with-many-words/and-numbers-2024 "
        "src/plainmind/redaction/private_keys.py M.A.I.N.B.O.D.Y.O.F.T.E.X.T.S AKIAshort eyJ.not.a.token"
    )
    assert REDACTOR.redact(text).text == text


def test_a_token_that_is_too_long_or_glued_to_more_is_none():
    key = TYPES["aws key id"](RANDOM)[1]

    assert hidden(key + "Q") == []
    assert hidden("x" + key) == []
    assert hidden(f"__{key}__") == [key]
    assert hidden(f"a%3D{key}%26b \\u003d{key}\\u0026") == [key, key]
