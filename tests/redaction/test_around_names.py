"""Names of secrets and what stands around them, in many syntaxes and languages; texts that are written otherwise."""

from __future__ import annotations

import pytest
from tests.redaction.corpus.measurement import measure

from plainmind.redaction.engine import Redactor
from plainmind.redaction.page import Page

REDACTOR = Redactor(key=b"k")
AWS_ID = "AKIA" + "IOSFODNN7QRSTUVW"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYzz3jKl9QwE"


def hidden(text):
    return [text[found.start : found.end] for found in REDACTOR.redact(text).found]


@pytest.mark.parametrize(
    "text",
    [
        "{id}:{}",
        "{id} / {}",
        "{id},{}",
        "key id {id} and {}",
        "AWS Access Key ID [None]: {id}\nAWS Secret Access Key [None]: {}",
        "User,Access key ID,Secret access key\nbob,{id},{}",
        "aws configure set aws_secret_access_key {}",
    ],
)
def test_the_secret_of_an_aws_key_is_hidden_with_its_id(text):
    assert hidden(text.replace("{id}", AWS_ID).replace("{}", AWS_SECRET))[-1] == AWS_SECRET


@pytest.mark.parametrize(
    "text",
    [
        "set the root password to {}",
        '{"pw": "{}"}',
        'auth=("bob", "{}")',
        "bob:{}@db.internal",
        "ssh to admin:{}@10.0.0.5",
        "proxy = bob:{}@proxy.corp.local:8080",
        "requirepass {}",
        "password\t{}",
        "Passwort für WLAN: {}",
        "Passwort wurde auf {} geändert",
        "le mdp c'est {}",
        "mot de passe du wifi : « {} »",
        "se cambió la contraseña por {}",
        "把密码设为{}",
        "Wi-Fiのパスワード：{}",
        "パスワードを{}に変更しました",
        "비밀번호를 {}로 바꿨어요",
        "пароль от wifi: {}",
        "ENV DB_PASSWORD {}",
        "define('DB_PASSWORD', '{}');",
        "<key>password</key>\n<string>{}</string>",
        '{"name": "DB_PASSWORD", "value": "{}"}',
        'variable "db_password" {\n  type = string\n  default = "{}"\n}',
        "| user | password |\n|---|---|\n| bob | {} |",
        "user,password\nbob,{}",
        "user\tpassword\nbob\t{}",
        "USER     PASSWORD\nbob      {}",
        "Passwords:\nroot: {}",
        "what is the password?\nBen: {}",
        "Use {} as the password",
        "{} is the password for the wifi",
        "Login: bob / {}",
        "ldapsearch -x -D cn=admin -w {} -b dc=x",
        "unzip -P {} a.zip",
        'echo "bob:{}" | chpasswd',
        "password: >-\n  {}",
        "ｐａｓｓｗｏｒｄ：{}",
        "p\u200bassword: {}",
        "pass\\_word=x password\\: {}",
        "password&quot;:&quot;{}&quot;",
    ],
)  # fmt: skip
@pytest.mark.parametrize("password", ["hunter22", "Tr0ub4dor&3", "Sommer2024!"])
def test_a_password_is_told_by_what_stands_around_it(text, password):
    assert hidden(text.replace("{}", password)) == [password]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("passphrase: correct horse battery staple", "correct horse battery staple"),
        ("The app password is yrzl agfq kkje ktow", "yrzl agfq kkje ktow"),
        ("recovery code: k3j9x-2mf8q", "k3j9x-2mf8q"),
        ("alarm PIN: 471100", "471100"),
        ("password: khgpbisfjldhjcoc", "khgpbisfjldhjcoc"),
    ],
)
def test_words_groups_and_scrambled_letters_are_hidden_whole(text, secret):
    assert hidden(text) == [secret]


@pytest.mark.parametrize(
    "text",
    [
        "the password is on the sticky note",
        "password reset is broken since Monday",
        "password = get_password()",
        "token: str",
        "the primary key is 3f786850e387550fdab836ed7e6dc881de23001b",
        "if not self.check_token(FlowSequenceEndToken):",
        "https://example.com/search?q=forgot+password&page=2&sort=new",
        "postgres://USER:PASSWORD@HOST:5432/DBNAME",
        "ghp_" + "x" * 36,
        "パスワードを「推測されにくいもの」に変更してください。",
        "passphrase: must have at least four words",
        "Email:bob22@example.com",
        "nginx:alpine3@sha256:abc",
    ],
)
def test_ordinary_text_stays(text):
    assert hidden(text) == []


def test_a_token_is_found_between_what_nobody_sees_and_hidden_with_it():
    token = "ghp_16C7\u200be42F292c6912E7710c8\u200d38347Ae178B4a"
    escaped = "ghp\\_16C7e42F292c6912E7710c838347Ae178B4a"

    assert hidden(f"see {token} there") == [token]
    assert hidden(f"see {escaped} there") == [escaped]
    assert "16C7" not in REDACTOR.redact('key = "ghp_16C7e42F292c" + "6912E7710c838347Ae178B4a"').text


def test_every_character_keeps_its_place():
    text = "a\u200bé\\_“x” &amp; %3D \u00adend"
    page = Page(text)

    for at, sign in enumerate(page.text):
        if sign.isascii() and sign.isalpha() and sign != "e":
            assert text[page.place_of(at)] == sign


def test_a_long_token_that_a_terminal_has_cut_is_hidden_to_its_end():
    text = "export KEY=ghp_16C7e42F292c6912E7710c838347Ae178B4a\nx81Qz93kLm27pRtY4\ndone"

    assert REDACTOR.redact(text).text.endswith("]\n\ndone") or "x81Qz93k" not in REDACTOR.redact(text).text


def test_a_copy_is_not_redacted_again():
    text = "password: hunter22 and the key is in [redacted:password#3f9a]:5432 token [redacted:token#00ff]"
    once = REDACTOR.redact(text).text

    assert REDACTOR.redact(once).text == once


@pytest.mark.parametrize(("half", "least"), [("dev", 0.99), ("unseen", 0.955)])
def test_of_the_corpus_so_much_is_hidden_and_hardly_a_word_more(half, least):
    figures = measure(REDACTOR.without_secrets, half, seed=1)

    assert figures.secrets.share >= least
    assert figures.words.share >= 0.995
    assert len(figures.alarms) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "We rotated the db password. New one: {}",
        "Wir haben das Passwort getauscht. Neu: {}",
        "Cambiamos la contraseña. La nueva es {}.",
        "昨天换了密码，现在是{}",
        "パスワードを変更しました。今は {} です。",
        "어제 비밀번호를 바꿨습니다. 지금은 {} 입니다.",
        "on a changé le mot de passe, maintenant c'est {}",
        "{} est le nouveau mot de passe",
        "il a choisi {} pour mot de passe",
        "{}がパスワードです",
        "{}를 비밀번호로 쓰세요",
        "le mot de passe n'est plus tapir4821 mais {}",
    ],
)
def test_what_is_new_is_said_in_the_next_sentence_or_before_the_name(text):
    assert "lemur7391" in hidden(text.format("lemur7391"))


def test_a_long_number_beside_a_word_for_a_password_is_one():
    assert hidden("old password 4228112350768766, please change it") == ["4228112350768766"]
    assert hidden("entran al wifi con la clave 2930095917023107.") == ["2930095917023107"]
    assert hidden("The password 2024 edition is out, with 1500 pages.") == []
    assert hidden("la clave 20240131 del pedido") == []
