"""What is written where a secret will be: `changeme`, `<your key>`, `${TOKEN}`, `****`."""

from __future__ import annotations

from plainmind.base.pattern import pattern

_WORDS = frozenset(
    """
    admin any apikey api-key api_key bearer blank changeit changeme change-me change_me confidential
    credentials default demo disabled dummy empty enabled encrypted example expired fake false foobar hashed
    hidden invalid key keyring local localhost lm-studio lmstudio masked missing n/a nil no-key none
    not-needed null ollama omitted optional pass passphrase passwd password passwort placeholder private
    prompt pwd redacted removed required root sample secret secrets sk-no-key-required some string test
    testing text token true undefined unknown unset user username value vllm
    argon2 argon2id aes128 aes256 aes-256 base32 base64 bcrypt hs256 md5 oauth2 pbkdf2 rs256 scrypt sha1
    sha224 sha256 sha384 sha512 sha-1 sha-256 sha-512 totp utf8 utf-8 2fa
    """.split()  # noqa: SIM905
)
# Talk about what belongs there; or a name that a program will look up: a variable, a template, a function, a vault.
_BEGINNING = pattern(
    r"(?:your|my|the|enter|insert|replace|provide|some)[ _-]"
    r"|\$[{(]|\$[a-z_][a-z0-9_]{0,64}$|%[a-z_][a-z0-9_]{0,64}%$|%[sdr]$|%\("
    r"|\{\{|\{[a-z_0-9.]{0,64}\}$|<[^<>]{0,64}>?$|&lt;|#\{|@[a-z_]{1,64}@?$"
    r"|!(?:secret|env|vault|ref|sub|getatt)|(?:env|vault|op|file|secretref|keychain|ssm|sops|gcp|awssm):"
)
_INSIDE_IN_LOWER_CASE = ("changeme", "placeholder", "redacted", "dummy", "goes-here", "goes_here")
_INSIDE = ("xxxx", "XXXX", "***", "...", "…", "•")
_LEAST_DIFFERENT = 3


def is_stand_in(text: str) -> bool:
    """Whether a text only marks the place of a secret."""
    low = text.lower()
    # Of the beginnings each has a sign in it, so letters and digits alone are none.
    if low in _WORDS or (not low.isalnum() and _BEGINNING.match(low)):
        return True
    for words, place in ((_INSIDE_IN_LOWER_CASE, low), (_INSIDE, text)):
        for word in words:
            if word in place:
                return True
    return len(set(low)) < _LEAST_DIFFERENT and not low.isdecimal()
