"""Texts made to be slow. Each is long enough that anything worse than linear runs into the time-out of a test."""

from __future__ import annotations

import importlib
import pkgutil
import random
import subprocess
import sys

import pytest
from tests.redaction.samples import BASE64, HEX

from plainmind import redaction
from plainmind.base.lazy import _Uncompiled
from plainmind.redaction.engine import Redactor
from plainmind.redaction.names import FAR_NAMES, NAMES
from plainmind.redaction.plausible import is_key, is_made_up, is_odd, is_password
from plainmind.redaction.tokens import SHAPED_TOKENS, TOKENS

LENGTH = 200_000
REDACTOR = Redactor(["Zq8vTr5mLp", "aaaaaaaaaa", "a" * 200 + "b"], key=b"k")
BEGINNINGS = [beginning for row in (*TOKENS, *SHAPED_TOKENS) for beginning in row[1].split()]
WORDS = [
    "password", "token", "api_key", "secret", "pass", "pwd", "mnemonic", "seed phrase ", "login a password ",
    "sshpass -p",
    "authorization: ", "bearer ", "basic ", "cookie: a=", "set-cookie: a=", "curl ", " -u a:", "://", "://a:", "@", ":",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "Private-Lines: 3\n", "MHcCAQEE", "MIIEowIBAAKCA",
    "hooks.slack.com/services/", "/api/webhooks/1", "Q~", "-us1", "1//0", ".atlasv1.", "whsec_", "sig=", "Signature=",
    "[redacted:", "[redacted:a#0000]", "my password is ", " for ", " is ", "=", ": ", '="', "='", "`", '\\"', "密码：",
    "4111 ",
]  # fmt: skip
SHAPES = [
    *"aAM09-_. :/=\"'\\%[;+@{$&中é\n",
    "a ", "a-", "a.", "M.", "-- ", "a:a@", "://a:b@", "eyJ.", "eyJ" + "a" * 40 + ".", "M" * 24 + ".", "MMMMMM.",
    "-----BEGIN PRIVATE KEY-----\nMIIEabcdefghijklmnop\n", "abcdefghijklmnop\n-----END PRIVATE KEY-----\n",
    "password=", "password: ", 'password="', 'password=\\"', "password = '", "password for a for a ", "password=aaaa&",
    "password=a,b,c,d,e", 'password="\\a', '"password":"\\', "password:aaaaaaaaaaaaaaaa=", "password=hunter\n",
    "password=hunter22 ", "api_key=a", "api_key=a1b2c3d4e5 ", "token=aaaaaaa1 ", "key_key_key_=", "--a-a-a-password ",
    "cookie: a=b;", "cookie: a=b; ", "curl -u a:", " -u a:bbbb ", "4111111111111112 ", "4" * 16 + " ", "a1" * 10 + " ",
    "ghp_" + "a" * 29 + " ", "AKIA" + "A" * 15 + " ", "x" * 19 + " ", "x" * 20 + " ", "-a" * 10 + " ", "\\n", "\\u003d",
    "%3D", "Private-Lines: 3\nabc\n", "abc1Q~", "?sig=", "&a=", "seed phrase: " + "word " * 10, "word ", "Zq8vTr5mL",
    "a" * 199, "Pass: ", "pass:a1", "password\n", "passwd ", "/pass: a/", "creds: a:", "creds are a / ", "mysql -p",
    " -pa1b2c3", "docker login -p a1b2c3 ", "redis-cli -a ", ":5432:a:b:", ":5432:a:b:c1d2\n", ":thin:a/", "WIFI:S:a;",
    "WIFI:P:a;", "token\n value: ", "identified by ", "пароль ", "пароль: a1b2 ", "password (a): ", "password (",
    "password for a - ",
]  # fmt: skip


def repeated(shape):
    return (shape * (LENGTH // len(shape) + 1))[:LENGTH]


def mixed(parts, joint):
    rng = random.Random("mixed")
    return joint.join(rng.choices(parts, k=LENGTH // 6))[:LENGTH]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES, *WORDS, *BEGINNINGS])
def test_a_shape_repeated_without_end_takes_no_longer_than_its_length(shape):
    text = repeated(shape)

    assert REDACTOR.redact(text).text.count("\n") == text.count("\n")


@pytest.mark.parametrize("joint", ["", " ", "=", "\n"])
@pytest.mark.parametrize("parts", [BEGINNINGS, WORDS, BEGINNINGS + WORDS], ids=["tokens", "words", "both"])
def test_everything_at_once_in_any_order(parts, joint):
    text = mixed(parts, joint)

    assert REDACTOR.redact(text).text.count("\n") == text.count("\n")


@pytest.mark.parametrize("anchor", sorted({name.anchor for name in (*NAMES, *FAR_NAMES)}))
def test_a_word_that_names_a_secret_may_stand_in_a_text_hundreds_of_times(anchor):
    text = f"{anchor} a1b2 and so on\n" * 300

    assert REDACTOR.redact(text).text.count("\n") == 300


def test_a_page_of_hundreds_of_passwords_is_searched_to_its_end():
    rng = random.Random("a page of passwords")
    secrets = ["".join(rng.choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789", k=12)) for _ in range(600)]
    sentences = (
        "my password there is {} by now",
        "the root password of box {} was set to {}",
        "Das Passwort lautet {}.",
    )
    page = "\n".join(
        sentences[at % 3].replace("{}", str(at), sentences[at % 3].count("{}") - 1).replace("{}", secret)
        for at, secret in enumerate(secrets)
    )

    redacted = REDACTOR.without_secrets(page)

    assert [secret for secret in secrets if secret in redacted] == []


def test_a_long_list_of_quotations_is_read_like_any_other():
    text = "".join(f'* "saying number {number}"\n' for number in range(300))

    assert REDACTOR.without_secrets(text) == text


@pytest.mark.parametrize("alphabet", [BASE64, HEX, "0123456789", "01 -", "".join(map(chr, range(33, 127)))])
def test_noise(alphabet):
    text = "".join(random.Random(1).choices(alphabet, k=LENGTH))

    assert REDACTOR.redact(text).text


def expressions():
    """Every expression of the package, by its source."""
    for module in pkgutil.iter_modules(redaction.__path__, f"{redaction.__name__}."):
        yield from _expressions_of(importlib.import_module(module.name))
    from plainmind.redaction.tokens import _rules_by_beginning

    for rules in _rules_by_beginning().values():
        yield from (rule.rest._source for rule in rules)


def _expressions_of(module):
    yield from _expressions_in(vars(module).values())


def _expressions_in(values):
    for found in values:
        if isinstance(found, _Uncompiled):
            yield found._source
        elif isinstance(found, tuple):
            yield from _expressions_in(found)
        elif isinstance(found, dict):
            yield from _expressions_in(found.values())
        else:
            yield from _expressions_in([getattr(found, "expression", ())])


def test_every_quantifier_is_bounded_or_never_gives_anything_back():
    from re import _constants, _parser  # the only way to look at an expression as it is understood

    giving_back = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}

    def unbounded(parsed):
        for operation, argument in parsed:
            if operation in giving_back and argument[1] == _constants.MAXREPEAT:
                yield argument
            for inner in argument if isinstance(argument, tuple | list) else ():
                if isinstance(inner, _parser.SubPattern):
                    yield from unbounded(inner)
                elif isinstance(inner, list):
                    for each in inner:
                        if isinstance(each, _parser.SubPattern):
                            yield from unbounded(each)

    seen = sorted(set(expressions()))
    assert len(seen) > 120
    assert [source for source in seen if list(unbounded(_parser.parse(source)))] == []


def test_a_text_without_secrets_compiles_next_to_nothing():
    program = (
        "import sys, re; made = []; real = re.compile; re.compile = lambda *a: made.append(a) or real(*a);"
        "before = set(sys.modules);"
        "from plainmind.redaction.engine import Redactor;"
        "assert not made, made;"
        "Redactor(key=b'k').redact('The printer is on VLAN 40.');"
        "print(len(made), *sorted(set(sys.modules) - before))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    compiled, *modules = ended.stdout.split()

    assert int(compiled) <= 4
    assert not {"hashlib", "typing", "dataclasses", "json", "urllib", "base64", "random"} & set(modules)


def test_the_rules_are_loaded_without_loading_re():
    program = "import sys; import plainmind.redaction.engine; print('re' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "False\n"


def test_no_value_is_kept_when_a_text_has_been_read():
    assert "hunter22x" not in REDACTOR.without_secrets("password: hunter22x and login is Tr0ub4dor&3")

    assert {judged.cache_info().currsize for judged in (is_password, is_made_up, is_odd, is_key)} == {0}


def test_many_different_signs_that_are_read_as_others_cost_no_more_than_few():
    letters = "".join(chr(0x1D400 + number) for number in range(676))

    assert work_of(letters * 100) < 3_000


def work_of(text):
    """How many calls of Python's own code a text costs: the same on every machine, unlike time."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        REDACTOR.without_secrets(text)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "shape",
    ["password ", "password=hunter22 ", "token=aaaaaaa1 ", "pass:a1", "key_key_key_=", "пароль: a1b2 ", "密码：",
     " -pa1b2c3", "a:a@", "x" * 20 + " ", "[redacted:a#0000]", "pkvwgc",
     "-----BEGIN PRIVATE KEY-----\nMIIEabcdefghijklmnop\n"],
)  # fmt: skip
def test_twice_the_length_takes_twice_the_work_and_no_more(shape):
    once, twice = (work_of((shape * length)[:length]) for length in (30_000, 60_000))

    assert twice <= 2.2 * once + 200


@pytest.mark.parametrize("joint", [" ", "=", "\n"])
def test_twice_as_much_of_everything_takes_twice_the_work_and_no_more(joint):
    text = mixed(BEGINNINGS + WORDS, joint)
    once, twice = work_of(text[:50_000]), work_of(text[:100_000])

    assert twice <= 2.3 * once


def test_prose_without_a_name_of_a_secret_costs_next_to_nothing():
    prose = "We met on Tuesday, talked about the 3 houses by the lake, and went home at 18:30.\n" * 1_000

    assert work_of(prose) < 1_500


CALM = "We met on Tuesday, and talked about the houses by the lake.\n" * 4


def work_of_one(text):
    """How many calls one of four hundred such texts costs, beyond what the first two hundred cost."""
    once, twice = (
        "".join(text.replace("#", str(at)) for at in range(100, 100 + count)) for count in (200, 400)
    )
    work_of(twice)  # which makes the expressions
    return (work_of(twice) - work_of(once)) / 200


def test_a_name_with_which_its_line_ends_is_not_looked_at_for_what_stands_on_the_line():
    assert work_of_one(f"Passwords:\nroot#: house\n\n{CALM}") <= 150


def test_the_same_rows_are_read_below_the_first_heading_only():
    assert work_of_one("a#,password\n" + "bob,house\n" * 20 + "\n") <= 150


def test_other_rows_below_each_heading_are_taken_apart_at_once():
    assert work_of_one("a#,password\n" + "bob#,house\n" * 20 + "\n") <= 165


def test_names_among_plain_words_cost_no_look_each():
    text = "the key is with the other key of the house in the garden by the lake # , and so on and on\n"

    assert work_of_one(text) <= 30


def test_rows_that_hold_no_secret_in_one_column_are_read_again_for_another():
    tables = "user,password\nkettle613x,house\nbob,harbour\n\n"

    assert "kettle613x" in REDACTOR.without_secrets(tables * 3)
    for again in ("password,user", "secret password,user"):
        text = tables + tables.replace("user,password", again)
        redacted = REDACTOR.without_secrets(text)
        assert redacted.count("kettle613x") == 1
        assert redacted.startswith(tables)
