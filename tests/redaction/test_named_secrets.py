"""Values behind `password`, `token` and `api key`: which are secrets, and which are prose, code or an example."""

from __future__ import annotations

import random

import pytest
from tests.redaction.corpus.cases import cases, fill
from tests.redaction.samples import BASE64, DASHED, HEX, PLAIN, some, uuid

from plainmind.redaction.engine import Redactor

REDACTOR = Redactor(key=b"k")
RANDOM = random.Random("named secrets")
KEY = some(PLAIN, 32)(RANDOM)
WITH_DASHES = some(DASHED, 48)(RANDOM)
HEXADECIMAL = some(HEX, 32)(RANDOM)
SLASHED = some(BASE64, 40)(RANDOM)


def hidden(text):
    return [text[found.start : found.end] for found in REDACTOR.redact(text).found]


@pytest.mark.parametrize(
    "text",
    [
        "password = {}",
        "password={}",
        "Password: {}",
        "PASSWORD: {}",
        "DB_PASSWORD={}",
        "db.password={}",
        "dbPassword: {},",
        "password => '{}'",
        'password := "{}"',
        '"password": "{}"',
        "'password': '{}'",
        '\\"password\\": \\"{}\\"',
        "password: `{}`",
        "password: “{}”",
        "**Password:** {}",
        "**Password**: {}",
        "| Password | {} |",
        "<password>{}</password>",
        'password: str = "{}"',
        "setPassword('{}')",
        "os.environ['PASSWORD'] = '{}'",
        'b"password": b"{}"',
        "Password → {}",
        "Password - {}",
        "passwd={}",
        "pwd={}",
        "pw: {}",
        "SMTP_PASS={}",
        "https://example.com/?user=a&pass={}&x=1",
        "jdbc:mysql://host/db?user=a&password={}&ssl=1",
        "Server=db;User Id=sa;Password={};Encrypt=yes",
        "passphrase: {}",
        "passcode is {}",
        "password2: {}",
        "password_prod = {}",
        "my password is {}",
        "My password is: {}",
        "the password was {} before",
        "the password for the wifi is {}",
        "The password has been changed to {}.",
        "password of the NAS: {}",
        'the password "{}" works',
        "--password {} --verbose",
        "--db-password {}",
        "sshpass -p {} ssh host",
        "machine example.com login bob password {}",
        "Passwort: {}",
        "Kennwort: {}",
        "contraseña: {}",
        "senha: {}",
        "mot de passe : {}",
        "wachtwoord: {}",
        "пароль: {}",
        "密码：{}",
        "密码: {}",
        "密码是{}，请保存",
        "我的密碼為 {}。",
        "口令：“{}”",
        "パスワードは{}です",
        "비밀번호는 {}",
        "curl -u admin:{} https://example.com",
        'curl -s --user "admin:{}" https://example.com',
        "curl -u 'admin:{}' https://example.com",
        "mysql -u root -p{} shop",
        "mariadb -uroot -p'{}' -e 'select 1'",
        "sshpass -p '{}' ssh bob@host",
        "redis-cli -h cache -a {} ping",
        "docker login -u bob -p {} registry.example.com",
        "db.internal:5432:app:bob:{}",
        "jdbc:oracle:thin:scott/{}@//db:1521/x",
        "WIFI:S:home;T:WPA;P:{};;",
        "Server=tcp:db,1433;Uid=sa;Pwd={};",
        "host=db user=app password={} dbname=x",
        "jdbc:sqlserver://db;user=sa;password={};x=1",
        "CREATE USER bob IDENTIFIED BY '{}';",
        "ALTER USER bob WITH PASSWORD '{}';",
        '<add key="Password" value="{}"/>',
        "root password (prod): {}",
        "password for the shop - {}",
        "Mein Passwort ist {}",
        "das Kennwort lautet: {}",
        "mi contraseña es {}",
        "mon mot de passe est {}",
        "minha senha é {}",
        "la mia password è {}",
        "la parola d'ordine: {}",
        "mijn wachtwoord is {}",
        "passord: {}",
        "moje heslo je {}",
        "salasana: {}",
        "kata sandi: {}",
        "moje hasło to {}",
        "mitt lösenord är {}",
        "şifre: {}",
        "jelszó: {}",
        "mật khẩu là {}",
        "мой пароль {}",
        "мой пароль - {}",
        "κωδικός: {}",
        "كلمة المرور: {}",
        "סיסמה: {}",
        "पासवर्ड: {}",
        "รหัสผ่าน: {}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("password", ["hunter22", "Tr0ub4dor&3", "pa$$w0rd!", "correct-horse-9"])
def test_a_password_is_known_by_its_name(text, password):
    assert hidden(text.replace("{}", password)) == [password]


@pytest.mark.parametrize(
    "text",
    [
        "Pass: {}",
        "User: bob Pass: {}",
        "pass : {}",
        '{"user": "bob", "pass": "{}"}',
        "user/pass: bob/{}",
        "openssl rsa -passin pass:{}",
        "User bob, password {}, thanks",
        "ssh bob@host (password {})",
        "passwd {}",
        "Password\n{}",
        "**Password:**\n{}",
        "- name: PASSWORD\n  value: {}",
        "creds: bob:{}",
        "credentials are bob / {}",
        "secret: {}",
        "MY_SECRET={}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("password", ["hunter22", "Tr0ub4dor&3", "s3cr3tPa55"])
def test_a_name_that_may_mean_something_else_counts_before_what_nobody_would_say(text, password):
    assert hidden(text.replace("{}", password)) == [password]


@pytest.mark.parametrize(
    "text",
    [
        "api_key={}",
        "API key: {}",
        "apiKey: '{}',",
        '"api-key": "{}"',
        "X-Api-Key: {}",
        "OPENAI_API_KEY={}",
        "my api key is {}",
        "https://example.com/?key={}&x=1",
        "https://example.com/?api_key={}&x=1",
        "secret: {}",
        "SECRET_KEY = '{}'",
        "client_secret={}",
        "aws_secret_access_key = {}",
        "private key: {}",
        "client-key-data: {}",
        "AccountKey={};EndpointSuffix=x",
        "token: {}",
        "export TOKEN={}",
        "refresh_token={}&a=b",
        "the token is {} and it works",
        'bot_token = "{}"',
        "--token {}",
        "--api-key {}",
        "--client-secret {}",
        "credentials: {}",
        "tokens = '{}'",
        "- name: SLACK_TOKEN\n  value: {}",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "key", [KEY, WITH_DASHES, HEXADECIMAL, SLASHED], ids=["plain", "dashed", "hex", "base64"]
)
def test_a_key_is_known_by_its_name(text, key):
    assert hidden(text.replace("{}", key)) == [key]


def test_a_uuid_is_a_key_when_it_is_called_one_and_an_id_otherwise():
    made = uuid(RANDOM)

    assert hidden(f"api_key: {made}") == [made]
    assert hidden(f"session: {made}, id={made}, key: {made}") == []


def test_a_value_with_commas_and_ampersands_is_hidden_whole():
    assert hidden("password=abcd&ef,gh;ij12 next") == ["abcd&ef,gh;ij12"]
    assert hidden("password=abcd12&user=bob") == ["abcd12"]


def test_a_long_quoted_value_with_escapes_is_hidden_whole():
    long = "a1\\nb2" * 12
    assert hidden(f'password: "{long}"') == [long]


@pytest.mark.parametrize(
    "text",
    """\
password: required
Password: *
password = ********
password: xxxxxxxx
password=<your-password>
password="your_password"
password: ${DB_PASSWORD}
password: $DB_PASSWORD
password: {{ vault_password }}
password={password}
password = %(password)s
password = os.environ["DB_PASSWORD"]
password = config.password2
password = getpass.getpass()
password = get_password(1)
password: env:DB_PASSWORD
password: !secret wifi_password
password: /run/secrets/db1
password: ~/.secrets/db1
password: C:\\secrets\\db1
password=newpassword1
password="testpassword"
"password": {"type": "string"}
"password": "This field has 1 error."
password: Optional[str] = None
def login(user: str, password: str, token: str | None = None) -> None:
password::Hasher2
password is wrong
my password is wrong.
my password is expired!
my password is obviously too short
the password is 12-character
passwords: 2024-05-01
password: 1.2.3
password: bob@example.com
password: 1234
password: user/pass
the password is stored as sha-256
the password policy of 2024 is strict
PASS: test_login_2
pass: test_login_2
pass: step3
pass: 2nd
pass: 3.11.7
pass: f(x2)
pass: 12 tests
pass: größe22
pass::Thing22
password step3
password sha256
password policy
password 12345
Password\t
the password is correct.&quot;);
secret: step3
secret is out2day
creds: bob
credentials are needed22
redis-cli -a $REDIS
mysql -u root -p shop
mysql -port
mkdir -p a1b2c3d4
docker run -p 8080:80 image2
grep -a abcd1234 file
db.internal:5432:app:bob:password
WIFI:S:home;T:nopass;P:changeme;;
jdbc:oracle:thin:scott/password@//db
self.auth = MakeBasic64Auth(a1b2c3d4)
identified by {password}
- name: TOKEN\n  value: "true"
compass=north1
PASSWORD=PASSWORD
PASSWORD=secret
PWD=/home/bob2
token: string
token: expired
token count: 12345
max_tokens: 4096
tokens: 12345678901234567890
token: cl100k_base
token = self.next_token_2
token = tokens.oauth2client9
token_url: https://login.example.com/oauth2/v2.0/a1b2c3d4e5
token: 2024-01-15T10:20:30Z
secret: my-kubernetes-secret-2
secret = settings/prod/db2.json
the secret is that it works 100 percent
api_key: your-api-key-1234567
api_key=xxxxxxxxxxxxxxxx1234a5b6
api key: gpt-4o-mini
access key: right Alt
key: a1b2c3d4e5f6a7b8
monkey=a1b2c3d4e5f6a7b8
keyboard: a1b2c3d4e5f6a7b8
key=value
commit 3f786850e387550fdab836ed7e6dc881de23001b
model: claude-3-5-sonnet-20241022
密码：请联系管理员
密码是什么？
パスワードは必須です
git@example.com:owner/repository2.git
curl -u admin https://example.com
docker run -u 1000:1000 image
curl https://example.com
su -u bob:hunter22
""".splitlines(),
)
def test_what_is_no_secret_stays(text):
    assert hidden(text) == []


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("my password is swordfish", "swordfish"),
        ("Our wifi password is sunflower, ok?", "sunflower"),
        ("my passphrase was now sunflower", "sunflower"),
        ("DB_PASSWORD=swordfish\nNAME=x", "swordfish"),
        ("PGPASSWD=SwordFish psql", "SwordFish"),
    ],
)
def test_a_plain_word_is_a_password_when_somebody_says_so(text, password):
    assert hidden(text) == [password]


def test_a_seed_phrase_is_hidden_word_by_word():
    words = "apple brave cloud delta eagle flame grape house ivory jelly koala lemon"

    assert hidden(f"seed phrase: {words}.") == [words]
    assert hidden(f'mnemonic="{words} mango"') == [f"{words} mango"]
    assert hidden("the seed phrase is twelve words long") == []
    assert hidden(f"the phrase: {words}") == []


def test_a_command_on_another_line_has_nothing_to_do_with_it():
    assert hidden("curl https://example.com\nlogin -u ada:hunter22") == []
    assert hidden("login -u ada:hunter22 # unlike curl") == []


def test_what_is_found_in_a_short_text_is_found_in_a_long_one_that_is_searched_in_another_way():
    before = "Nothing of this is worth hiding, and it goes on for a while.\n" * 120
    for case in cases("dev")[::12]:
        text = fill(case, 3).text
        alone = REDACTOR.redact(text)
        inside = REDACTOR.redact(f"{before}\n{text}")

        assert inside.text[len(before) + 1 :] == alone.text, case.id
