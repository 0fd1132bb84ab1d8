"""Tokens that say whose they are: how they begin, what they are made of, how long they are."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # Kind, beginnings, a class of characters, and how many of them at least and at most.
    Token: TypeAlias = tuple[str, str, str, int, int]
    # Kind, beginnings, and an expression for the rest.
    ShapedToken: TypeAlias = tuple[str, str, str]

_HEX = "[0-9a-f]"
_ANY_HEX = "[0-9A-Fa-f]"
_PLAIN = "[A-Za-z0-9]"
_CAPITALS = "[A-Z0-9]"
_WORD = "[A-Za-z0-9_]"
_DASHED = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/=_-]"

# The least length is a little below what the vendors give out today: they change it without a word.
TOKENS: tuple[Token, ...] = (
    # Code hosting
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", _PLAIN, 30, 255),
    ("github", "github_pat_", _WORD, 40, 255),
    ("atlassian", "ATATT3 ATCTT3", "[A-Za-z0-9_=-]", 60, 400),
    ("atlassian", "ATBB", _PLAIN, 28, 40),
    # Clouds
    ("aws", "AKIA ASIA ABIA ACCA", _CAPITALS, 16, 16),
    ("aws", "ABSK", _BASE64, 60, 400),
    ("google", "AIza", _DASHED, 35, 35),
    ("google", "GOCSPX-", _DASHED, 24, 40),
    ("google", "ya29.", _DASHED, 20, 2048),
    ("alibaba", "LTAI", _PLAIN, 16, 30),
    ("tencent", "AKID", _PLAIN, 30, 40),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", _HEX, 64, 64),
    ("heroku", "HRKU-", _DASHED, 30, 80),
    ("netlify", "nfp_", _PLAIN, 32, 60),
    ("fly", "fo1_", _DASHED, 36, 60),
    ("render", "rnd_", _PLAIN, 24, 40),
    ("supabase", "sbp_", _HEX, 40, 40),
    ("supabase", "sb_secret_", _DASHED, 20, 60),
    ("neon", "napi_", _PLAIN, 48, 72),
    ("databricks", "dapi", _HEX, 32, 32),
    ("vault", "hvs. hvb. hvr.", _DASHED, 24, 300),
    ("pulumi", "pul-", _HEX, 40, 40),
    ("tailscale", "tskey-", _DASHED, 20, 100),
    # Models
    ("anthropic", "sk-ant-", _DASHED, 32, 300),
    ("openrouter", "sk-or-", _DASHED, 32, 100),
    ("openai", "sk-proj- sk-svcacct- sk-admin- sk-None-", _DASHED, 20, 300),
    ("openai", "sess-", _PLAIN, 32, 60),
    ("groq", "gsk_", _PLAIN, 40, 80),
    ("xai", "xai-", _PLAIN, 60, 120),
    ("huggingface", "hf_ api_org_", _PLAIN, 30, 60),
    ("replicate", "r8_", _PLAIN, 30, 60),
    ("perplexity", "pplx-", _PLAIN, 36, 70),
    ("jina", "jina_", _DASHED, 50, 80),
    ("together", "tgp_v1_", _DASHED, 36, 60),
    ("fireworks", "fw_", _PLAIN, 22, 40),
    ("nvidia", "nvapi-", _DASHED, 50, 90),
    ("cerebras", "csk-", _PLAIN, 40, 60),
    ("elevenlabs", "sk_", _HEX, 48, 48),
    ("pinecone", "pcsk_", _WORD, 50, 100),
    ("langsmith", "lsv2_pt_ lsv2_sk_", _WORD, 40, 60),
    ("tavily", "tvly-", _DASHED, 20, 60),
    ("firecrawl", "fc-", _HEX, 32, 32),
    # Packages
    ("npm", "npm_", _PLAIN, 36, 36),
    ("pypi", "pypi-AgE", _DASHED, 50, 400),
    ("rubygems", "rubygems_", _HEX, 48, 48),
    ("docker", "dckr_pat_ dckr_oat_", _DASHED, 20, 64),
    # Messages
    ("slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxe- xapp-", _DASHED, 20, 300),
    ("slack", "xoxe.xoxb- xoxe.xoxp-", _DASHED, 20, 300),
    ("slack", "xoxd-", "[A-Za-z0-9%+/=_-]", 20, 400),
    ("mailgun", "key-", _HEX, 32, 32),
    ("twilio", "SK", _HEX, 32, 32),
    # Payment and shops
    ("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", _PLAIN, 20, 247),
    ("square", "sq0atp- sq0csp-", _DASHED, 22, 60),
    ("square", "EAAA", _DASHED, 56, 64),
    ("facebook", "EAA", _PLAIN, 80, 400),
    ("shopify", "shpat_ shpca_ shppa_ shpss_", _ANY_HEX, 32, 32),
    # Work
    ("notion", "ntn_", _PLAIN, 40, 60),
    ("notion", "secret_", _PLAIN, 43, 43),
    ("linear", "lin_api_ lin_oauth_", _PLAIN, 36, 70),
    ("figma", "figd_ figu_", _DASHED, 36, 60),
    ("hubspot", "pat-na1- pat-na2- pat-eu1-", _DASHED, 36, 36),
    ("contentful", "CFPAT-", _DASHED, 40, 50),
    ("grafana", "glsa_", _WORD, 36, 60),
    ("newrelic", "NRAK-", _CAPITALS, 24, 32),
    ("sentry", "sntryu_", _HEX, 64, 64),
    # Keys of people
    ("private-key", "AGE-SECRET-KEY-1", _CAPITALS, 58, 58),
    ("private-key", "xprv", _PLAIN, 100, 112),
)

SHAPED_TOKENS: tuple[ShapedToken, ...] = (
    (
        "gitlab",
        "glpat- gldt- glptt- glrt- glcbt- glft- glsoat- glagent- glimt- glffct- gloas-",
        r"[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
    ),
    # A word such as `sk-learn-something` has no long stretch of letters and digits.
    ("openai", "sk-", r"(?:[A-Za-z0-9]{1,12}[_-]){0,3}[A-Za-z0-9]{20,64}(?![A-Za-z0-9_-])"),
    ("voyage", "pa-", r"(?=[a-z0-9_-]{0,20}[A-Z])[A-Za-z0-9_-]{40,48}(?![A-Za-z0-9_-])"),
    ("jwt", "eyJ", r"[A-Za-z0-9_-]{10,4096}(?:\.[A-Za-z0-9_-]{4,16384}){1,4}"),
    ("sendgrid", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.-]{29,69}[A-Za-z0-9_-]"),
    ("airtable", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("doppler", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ("postman", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("cloudflare", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,160}"),
    ("dropbox", "sl.", r"[A-Za-z0-9_-]{100,2048}"),
    # Its bot's number stands before the colon.
    ("telegram", "AA", r"(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{30,36}(?![A-Za-z0-9_-])"),
    ("twitter", "AAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,200}"),
    ("discord", "M N O", r"[A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_-])"),
    ("discord", "mfa.", r"[A-Za-z0-9_-]{80,90}"),
)
