"""Secrets of sixty and more types and the places where people leave them, all made when the tests run."""

from __future__ import annotations

import base64
import json
import string

PLAIN = string.ascii_letters + string.digits
WORD = PLAIN + "_"
DASHED = PLAIN + "_-"
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + "234567"
BASE64 = PLAIN + "+/"


def some(alphabet, count):
    """Make a generator of `count` characters; it begins and ends with a letter or a digit, as tokens do."""

    def made(rng):
        ends = [sign for sign in alphabet if sign.isalnum()]
        return rng.choice(ends) + "".join(rng.choices(alphabet, k=count - 2)) + rng.choice(ends)

    return made


def token(beginning, alphabet, count):
    """A token that is a secret from its first character to its last."""
    rest = some(alphabet, count)

    def made(rng):
        secret = beginning + rest(rng)
        return secret, secret

    return made


def within(template, made_of, count):
    """A secret that is known by what stands around it: `{}` is its place."""
    rest = some(made_of, count)

    def made(rng):
        secret = rest(rng)
        return template.format(secret), secret

    return made


def jwt(rng):
    parts = [
        json.dumps({"alg": "HS256", "typ": "JWT"}),
        json.dumps({"sub": str(rng.random()), "iat": 1516239022}),
    ]
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    secret = ".".join([*encoded, some(DASHED, 43)(rng)])
    return secret, secret


def discord(rng):
    secret = f"{rng.choice('MNO')}{some(PLAIN, 23)(rng)}.{some(DASHED, 6)(rng)}.{some(DASHED, 38)(rng)}"
    return secret, secret


def joined(*parts):
    def made(rng):
        secret = "".join(part if isinstance(part, str) else part(rng) for part in parts)
        return secret, secret

    return made


def uuid(rng):
    return "-".join(some(HEX, count)(rng) for count in (8, 4, 4, 4, 12))


def basic(rng):
    secret = base64.b64encode(f"admin:{some(PLAIN, 14)(rng)}".encode()).decode()
    return f"Authorization: Basic {secret}", secret


def card(rng):
    digits = [4, *(rng.randrange(10) for _ in range(14))]
    doubled = [
        digit if at % 2 else (digit * 2 - 9 if digit > 4 else digit * 2) for at, digit in enumerate(digits)
    ]
    digits.append(-sum(doubled) % 10)
    secret = "".join(map(str, digits))
    return secret, secret


def spaced_card(rng):
    _, digits = card(rng)
    secret = " ".join(digits[at : at + 4] for at in range(0, 16, 4))
    return secret, secret


TYPES = {
    "github": token("ghp_", PLAIN, 36),
    "github oauth": token("gho_", PLAIN, 36),
    "github app": token("ghs_", PLAIN, 36),
    "github fine-grained": token("github_pat_", WORD, 82),
    "gitlab": token("glpat-", DASHED, 20),
    "gitlab routable": joined("glpat-", some(DASHED, 27), ".01.", some(string.ascii_lowercase + string.digits, 9)),
    "atlassian": token("ATATT3", DASHED, 180),
    "bitbucket": token("ATBB", PLAIN, 32),
    "aws key id": token("AKIA", CAPITALS, 16),
    "aws session key id": token("ASIA", CAPITALS, 16),
    "aws secret": within("aws_secret_access_key={}", BASE64, 40),
    "google api": token("AIza", DASHED, 35),
    "google client secret": token("GOCSPX-", DASHED, 28),
    "google access": token("ya29.", DASHED, 120),
    "google refresh": token("1//0", DASHED, 60),
    "azure client secret": joined(some(PLAIN, 3), "8Q~", some(PLAIN + "~.-_", 33)),
    "azure storage": within("AccountKey={}==", BASE64, 86),
    "azure shared signature": within("https://a.example/c?sv=2024&sig={}%3D&se=1", PLAIN, 43),
    "alibaba": token("LTAI", PLAIN, 20),
    "tencent": token("AKID", PLAIN, 32),
    "digitalocean": token("dop_v1_", HEX, 64),
    "heroku": token("HRKU-", DASHED, 60),
    "netlify": token("nfp_", PLAIN, 36),
    "supabase": token("sbp_", HEX, 40),
    "supabase secret": token("sb_secret_", DASHED, 31),
    "planetscale": token("pscale_tkn_", DASHED, 43),
    "databricks": token("dapi", HEX, 32),
    "vault": token("hvs.", DASHED, 90),
    "terraform": joined(some(PLAIN, 14), ".atlasv1.", some(DASHED, 67)),
    "pulumi": token("pul-", HEX, 40),
    "tailscale": joined("tskey-auth-", some(PLAIN, 12), "-", some(PLAIN, 32)),
    "doppler": joined("dp.pt.", some(PLAIN, 43)),
    "fly": token("fo1_", DASHED, 43),
    "openai": token("sk-", PLAIN, 48),
    "openai project": token("sk-proj-", DASHED, 156),
    "anthropic": joined("sk-ant-api03-", some(DASHED, 93), "AA"),
    "openrouter": joined("sk-or-v1-", some(HEX, 64)),
    "groq": token("gsk_", PLAIN, 52),
    "xai": token("xai-", PLAIN, 80),
    "huggingface": token("hf_", string.ascii_letters, 34),
    "replicate": token("r8_", PLAIN, 37),
    "perplexity": token("pplx-", PLAIN, 48),
    "voyage": token("pa-", DASHED, 43),
    "nvidia": token("nvapi-", DASHED, 64),
    "pinecone": token("pcsk_", WORD, 69),
    "langsmith": joined("lsv2_pt_", some(HEX, 32), "_", some(HEX, 10)),
    "tavily": token("tvly-", PLAIN, 32),
    "npm": token("npm_", PLAIN, 36),
    "pypi": token("pypi-AgEIcHl", DASHED, 150),
    "docker": token("dckr_pat_", DASHED, 27),
    "slack bot": joined("xoxb-", some(string.digits, 12), "-", some(string.digits, 12), "-", some(PLAIN, 24)),
    "slack app": joined("xapp-1-A", some(CAPITALS, 10), "-", some(string.digits, 13), "-", some(HEX, 64)),
    "slack webhook": within("https://hooks.slack.com/services/T0000/B0000/{}", PLAIN, 24),
    "discord bot": discord,
    "discord webhook": within("https://discord.com/api/webhooks/123456789012345678/{}", DASHED, 68),
    "telegram": within("123456789:AA{}", DASHED, 33),
    "twilio": token("SK", HEX, 32),
    "sendgrid": joined("SG.", some(DASHED, 22), ".", some(DASHED, 43)),
    "mailgun": token("key-", HEX, 32),
    "mailchimp": joined(some(HEX, 32), "-us12"),
    "stripe": token("sk_live_", PLAIN, 24),
    "stripe webhook": token("whsec_", BASE64, 32),
    "shopify": token("shpat_", HEX, 32),
    "square": token("sq0atp-", DASHED, 22),
    "facebook": token("EAA", PLAIN, 150),
    "notion": token("ntn_", PLAIN, 46),
    "linear": token("lin_api_", PLAIN, 40),
    "figma": token("figd_", DASHED, 40),
    "airtable": joined("pat", some(PLAIN, 14), ".", some(HEX, 64)),
    "hubspot": joined("pat-na1-", uuid),
    "grafana": joined("glsa_", some(PLAIN, 32), "_", some(HEX, 8)),
    "new relic": token("NRAK-", CAPITALS, 27),
    "sentry": token("sntrys_", BASE64, 120),
    "postman": joined("PMAK-", some(HEX, 24), "-", some(HEX, 34)),
    "age": token("AGE-SECRET-KEY-1", CAPITALS, 58),
    "jwt": jwt,
    "database url": within("postgresql://app:{}@db.internal:5432/app", PLAIN + "!$", 18),
    "redis url": within("redis://:{}@cache.internal:6379/0", PLAIN, 20),
    "basic auth url": within("https://deploy:{}@git.example.com/a.git", PLAIN, 16),
    "bearer": within("Authorization: Bearer {}", DASHED + ".", 40),
    "basic": basic,
    "cookie": within("Cookie: session={}; theme=dark", PLAIN, 32),
    "card": card,
    "spaced card": spaced_card,
    "key by name": within("DATADOG_API_KEY={}", HEX, 32),
    "token by name": within("ACCESS_TOKEN={}", PLAIN, 32),
    "secret by name": within("client_secret={}", PLAIN, 32),
    "password by name": within("DB_PASSWORD={}", PLAIN + "!@#%", 14),
}  # fmt: skip

CONTEXTS = {
    "alone": "{}",
    "in a sentence": "I have put {} into the settings, please try again.",
    "at the end of a sentence": "The deployment now uses {}.",
    "after a colon": "here it is: {}",
    "in parentheses": "the old one ({}) is gone",
    "in double quotes": 'use "{}" for that',
    "in single quotes": "use '{}' for that",
    "in backticks": "run it with `{}` please",
    "in a list": "- first\n- {}\n- third",
    "in a numbered list": "1. {}\n2. next",
    "in bold": "the value is **{}** for now",
    "in a table": "| name | value |\n|---|---|\n| ci | {} |",
    "in a code fence": "```sh\ncurl example\n{}\n```",
    "in an env file": "# production\nNAME=x\nVALUE={}\nDEBUG=0",
    "exported": "export SOME_VALUE='{}'\nmake",
    "in yaml": "service:\n  value: {}\n  port: 80",
    "in toml": '[service]\nvalue = "{}"\n',
    "in xml": "<config><value>{}</value></config>",
    "in a log": "2026-02-10T10:00:00Z INFO worker-3 request sent with {} status=200",
    "in a diff": "@@ -1 +1 @@\n-{}\n+removed",
    "in a quotation": "> {}\nwhat is this?",
    "in chinese": "请把{}保存好，谢谢。",
    "in japanese": "設定には{}を使ってください。",
    "with carriage returns": "one\r\n{}\r\ntwo",
    "twice": "{0}\nand once more\n{0}",
    "in html": '<input name="v" value="{}">',
    "in a link": "see [this]({}) for more",
    "after an escaped line break": "first line\\n{}\\nlast line",
    "in colour": "\x1b[32m{}\x1b[0m ok",
    "in csv": "a,{},b",
}


def in_json(snippet):
    return json.dumps({"role": "user", "text": f"it is\n{snippet}\nok"})


def in_json_twice(snippet):
    return json.dumps({"line": in_json(snippet)})


def placed(snippet):
    """Yield the name of every context, and the snippet in it."""
    for name, template in CONTEXTS.items():
        yield name, template.replace("{0}", snippet).replace("{}", snippet)
    yield "in json", in_json(snippet)
    yield "in json within json", in_json_twice(snippet)
