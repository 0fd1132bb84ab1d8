"""What people and programs call a secret, in many languages, and the words that say what one is."""

from __future__ import annotations

from plainmind.base.lazy import pattern
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# Everything here is in lower case and without accents, as `Page` gives it.

PASSWORD, DOUBTFUL, KEY, LOGIN, PHRASE, PIN = "password", "doubtful", "key", "login", "phrase", "pin"
# The expression of a form has the value in it, as its last group: made up, or anything in the place of a password.
FORM, SURE_FORM = "form", "sure form"


@value
class Name:
    """What a secret is called: where its `anchor` stands, the expression says whether it is a name for one."""

    kind: str
    sort: str
    anchor: str
    source: str
    expression: re.Pattern[str]


def _name(sort: str, anchor: str, expression: str = "", kind: str = "password") -> Name:
    return Name(kind, sort, anchor, expression or anchor, pattern(expression or anchor))


# A word of its own: not the end of another one, unless an escape of a line break stands before it.
_ALONE = r"(?:(?<![a-z0-9])|(?<=\\[nrt]))"
_OVER = "(?![a-z])"

# What digits open, and nobody tells anybody. The code of a door is told to every guest.
_OWN = "(?:alarm(?:e|a|anlage)?|safe|phone|card|tresor|handys|coffre|telephone|portable|carte|caja fuerte|telefono|movil|tarjeta)"  # noqa: E501

NAMES: tuple[Name, ...] = (
    # English, and whatever programs say; German and Scandinavian words that sound alike
    _name(LOGIN, "pass", rf"(?<=[a-z]/)pass(?:word)?s?{_OVER}"),
    _name(
        PASSWORD,
        "pass",
        r"pass(?:[ _-]?w(?:o|\*)r[dt](?:e?s|e|er|ern)?|wd|phrases?|codes?|ords?|(?:(?<=de[ _-]pass)|(?<=depass)|(?<=ra-pass)|(?<=ra pass))e)(?![a-z])"  # noqa: E501
        r"|pass(?:word|wd|phrase)(?=(?:prod|dev|test|stag|live|value|text|plain|confirm|b64|base64))"
        rf"|(?:(?<=[a-z0-9][_.-])|(?<=require)|(?<=--)|(?<=[ \t]/))pass{_OVER}|{_ALONE}passw?(?==)"
        # `remotepass = …`, and no bypass, compass, overpass or trespass
        r"|(?<=[a-z])(?<!by)(?<!com)(?<!ver)(?<!nder)(?<!res)(?<!sur)pass(?=[\"']?[ ]?[:=])",
    ),
    _name(DOUBTFUL, "pass", rf"(?<!/){_ALONE}pass{_OVER}"),
    _name(
        PASSWORD,
        "pw",
        rf"pwr?ds?{_OVER}|(?:{_ALONE}|(?<=[_-])|(?<=bind)|(?<=root)|(?<=user)|(?<=admin)|(?<=wifi)|(?<=db))pws?{_OVER}",
    ),
    # as people mistype it, or write it in order not to be found
    _name(PASSWORD, "psw", rf"{_ALONE}psw{_OVER}"),
    _name(PASSWORD, "pssw", rf"psswo?r?d{_OVER}"),
    _name(PASSWORD, "pasw", rf"pasw(?:d|or[dt]|rd){_OVER}"),
    _name(PASSWORD, "pa$$", rf"pa\$\$w(?:or)?d{_OVER}"),
    _name(PASSWORD, "passw0", rf"passw0r[dt]{_OVER}"),
    _name(PASSWORD, "pa55", rf"pa55w[o0]r[dt]{_OVER}"),
    _name(PASSWORD, "p4ss", rf"p4ssw[o0]r[dt]{_OVER}"),
    _name(PASSWORD, "p@ss", rf"p@ss(?:w[o0*]r[dt]|wd)?{_OVER}"),
    _name(PASSWORD, "p*ss", rf"p\*ssw[o0*]r[dt]{_OVER}"),
    *(
        _name(PASSWORD, f"p{joint}a{joint}s{joint}s", f"\\{joint}".join("password") + _OVER)
        for joint in (" ", ".", "-", "_", "*")
    ),
    _name(PASSWORD, "authtok", rf"authtok{_OVER}"),
    _name(PASSWORD, "p/w", rf"{_ALONE}p/w{_OVER}"),
    _name(LOGIN, "u/p", rf"{_ALONE}u/p{_OVER}"),
    _name(PASSWORD, "wpa", rf"{_ALONE}wpa[23]?[ -]?(?:key|schlue?ssel|passphrase|code|psk){_OVER}"),
    _name(PASSWORD, "network key", rf"network keys?{_OVER}"),
    _name(PASSWORD, "psk", rf"(?:{_ALONE}|(?<=[_-]))psk{_OVER}"),
    _name(PASSWORD, "identif", "identified by"),
    _name(
        KEY,
        "secret",
        rf"secret(?:s|o|os|a|as|e|es|i)?{_OVER}|secret(?=key|accesskey|token|id|value|string)",
        "secret",
    ),
    _name(KEY, "token", rf"tokens?{_OVER}|token(?=value|secret)", "token"),
    _name(KEY, "key", rf"keys?{_OVER}|key(?=data|value|secret)", "key"),
    _name(KEY, "sessid", rf"(?<=php)sessid{_OVER}|sessid{_OVER}", "token"),
    _name(KEY, "recovery", rf"recovery[ _-]?(?:codes?|keys?){_OVER}", "secret"),
    _name(KEY, "backup code", rf"backup codes?{_OVER}", "secret"),
    _name(
        PHRASE,
        "phrase",
        rf"(?:(?<=seed.)|(?<=seed)|(?<=pass)|(?<=very.)|(?<=nic.)|(?<=ret.))phrases?{_OVER}",
        "passphrase",
    ),
    _name(PHRASE, "mnemonic", f"mnemonic{_OVER}", "passphrase"),
    _name(
        PASSWORD,
        "wifi",
        rf"{_ALONE}wifi[ -](?:key|schlue?ssel|code)s?{_OVER}|(?<=code )wifi{_OVER}|(?<=cle )wifi{_OVER}",
    ),
    _name(PASSWORD, "wlan", rf"{_ALONE}wlan[ -]?(?:key|schlue?ssel|code)s?{_OVER}"),
    _name(LOGIN, "wifi", rf"{_ALONE}wifi{_OVER}"),
    _name(LOGIN, "wi-fi", rf"{_ALONE}wi-fi{_OVER}"),
    _name(DOUBTFUL, "wi-fi", rf"{_ALONE}wi-fi(?![a-z_-])"),
    _name(LOGIN, "wlan", rf"{_ALONE}wlan{_OVER}"),
    _name(LOGIN, "vpn", rf"{_ALONE}vpn(?=:? )"),
    _name(LOGIN, "mysqli", r"mysqli(?=\()"),
    _name(LOGIN, "pdo(", r"pdo(?=\()"),
    _name(DOUBTFUL, "wifi", rf"{_ALONE}wifi(?![a-z_-])"),
    _name(DOUBTFUL, "wlan", rf"{_ALONE}wlan(?![a-z_-])"),
    _name(PIN, "passcode", rf"passcodes?{_OVER}", "pin"),
    _name(PIN, "geheimzahl", rf"geheimzahl{_OVER}", "pin"),
    *(_name(PIN, f"{what}code", rf"{what}codes?{_OVER}", "pin") for what in ("alarm ", "alarm", "alarm's ")),
    _name(PIN, "code ", rf"code (?:for|of|to) (?:the |my |our )?{_OWN}{_OVER}", "pin"),
    _name(PIN, "code ", rf"code (?:der|des|fur die|fur den|vom) {_OWN}{_OVER}", "pin"),
    _name(PIN, "code ", rf"code (?:de l'|du |de la |de ma |de mon |d')?{_OWN}{_OVER}", "pin"),
    _name(PIN, "codigo ", rf"codigo (?:de |del )?(?:la |el |mi )?{_OWN}{_OVER}", "pin"),
    _name(
        PIN,
        "code ",
        r"code (?:secret|confidentiel|(?:(?:de |du )(?:la |ma )?)?(?:carte|telephone|mobile)(?: bleue)?)(?![a-z])",
        "pin",
    ),
    _name(
        PIN,
        "codigo ",
        r"codigo (?:secreto|pin|de (?:la |el )?(?:tarjeta|telefono|movil))(?![a-z])",
        "pin",
    ),
    _name(DOUBTFUL, "acces", rf"access codes?{_OVER}|(?<=code d')acces{_OVER}"),
    _name(DOUBTFUL, "unlock code", rf"{_ALONE}unlock codes?{_OVER}"),
    _name(PIN, "unlock code", rf"{_ALONE}unlock codes?{_OVER}", "pin"),
    _name(PIN, "entsperr", rf"entsperr(?:code|pin|zahl)s?{_OVER}", "pin"),
    _name(PIN, "verrouillage", rf"code de (?:de)?verrouillage{_OVER}|verrouillage{_OVER}", "pin"),
    _name(PIN, "desbloqueo", rf"desbloqueo{_OVER}", "pin"),
    *(
        _name(DOUBTFUL, f"{what}word", rf"{_ALONE}{what}words?{_OVER}")
        for what in ("safe ", "code ", "magic ")
    ),
    _name(DOUBTFUL, "losungswort", rf"losungswort{_OVER}"),
    _name(LOGIN, "conne", r"connect(?:ion|er|e-toi)?(?![a-z])|connexion"),
    _name(LOGIN, "acces", rf"acces(?:os?|s)?{_OVER}"),
    _name(LOGIN, "identif", "identifiants"),
    _name(LOGIN, "entra", rf"{_ALONE}entrar?{_OVER}"),
    _name(LOGIN, "sign in", "sign in(?: as)?"),
    _name(LOGIN, "log in", "log in(?: as)?"),
    _name(LOGIN, "ssid", rf"ssid{_OVER}"),
    _name(LOGIN, "cred", rf"cred(?:entials?|enciai?s|encial(?:es)?|s)?{_OVER}"),
    _name(KEY, "cred", rf"cred(?:ential)?s?{_OVER}", "secret"),
    _name(LOGIN, "auth", rf"(?:{_ALONE}|(?<=basic)|(?<=_))auth(?![a-z0-9])"),
    _name(PASSWORD, "auth", rf"(?<=master)auth{_OVER}"),
    _name(LOGIN, "login", rf"logins?{_OVER}"),
    # German
    _name(PASSWORD, "kennw", rf"kennwor(?:t(?:e[ns]?|s|er|ern)?){_OVER}|kennworter"),
    _name(PASSWORD, "zugang", rf"zugangscodes?{_OVER}"),
    _name(LOGIN, "zugang", rf"zugang(?:sdaten)?{_OVER}"),
    _name(KEY, "schlu", rf"schlue?ssels?{_OVER}", "key"),
    _name(KEY, "wiederherstellungs", "wiederherstellungs(?:code|schlussel)s?", "secret"),
    _name(KEY, "geheim", rf"geheimni(?:s|sse)(?:es)?{_OVER}|geheimcode", "secret"),
    # French
    _name(PASSWORD, "mdp", rf"{_ALONE}mdp{_OVER}"),
    _name(DOUBTFUL, "pass", rf"{_ALONE}passe(?= ?[:=]| est )"),
    _name(DOUBTFUL, "sesame", rf"{_ALONE}sesame(?= ?[:=]| est | is )"),
    _name(KEY, "jeton", rf"jetons?{_OVER}", "token"),
    _name(PHRASE, "phrase", r"phrase (?:secrete|de recuperation|de passe)", "passphrase"),
    # Spanish, Portuguese, Italian
    _name(KEY, "recupera", rf"recupera(?:ci|ti|ca|zi)on?{_OVER}", "secret"),
    _name(PHRASE, "frase ", "frase (?:de contrasena|semilla|secreta|de recuperacion|segreta)", "passphrase"),
    _name(PASSWORD, "contrase", r"contrasen(?:y|i)?as?"),
    _name(PASSWORD, "contra", rf"{_ALONE}contra(?=:| es | = )"),
    _name(DOUBTFUL, "clave", rf"{_ALONE}claves?{_OVER}"),
    _name(PASSWORD, "senha", rf"{_ALONE}senhas?{_OVER}"),
    _name(KEY, "chave", rf"{_ALONE}chaves?{_OVER}", "key"),
    _name(KEY, "segre", rf"segre(?:do|dos|to|ti|ta){_OVER}", "secret"),
    _name(PASSWORD, "parol", rf"{_ALONE}parol[ae] d'ordine"),
    _name(DOUBTFUL, "parol", rf"{_ALONE}parol[ae]?{_OVER}"),
    _name(KEY, "chiav", rf"{_ALONE}chiavi?e?{_OVER}", "key"),
    # Other languages in Latin letters
    _name(PASSWORD, "wachtwoord", "wachtwoord(?:en)?"),
    _name(KEY, "sleutel", f"sleutels?{_OVER}", "key"),
    _name(PASSWORD, "slo", rf"(?:(?<= ha)|(?<= he)|(?<=^ha)|(?<=^he)|(?<=\nha)|(?<=\nhe))slo{_OVER}"),
    _name(PASSWORD, "kode", rf"(?<=adgangs)koden?{_OVER}|kodeord(?:et)?"),
    _name(PASSWORD, "salasana", "salasana(?:n|si)?"),
    _name(PASSWORD, "kata sandi"),
)

# What programs take as a password, and how people say what opens something, without a name for it.
_X = r"""["'`]?([^\s"'`<>|;,]{4,128}+)"""
_NO_HOST = _X.replace(";,]", ";,@]")
_IS_USED = "(?: (?:is|was|it's|it is|uses?|ist|c'est|est|es)(?: (?:now|still|again))?:? )"
# Between who somebody is and what opens.
_THEN = "| / |\\t|\\)[ ]?: | = | [-–—→] |, (?:and )?(?:then )?| (?:with|using|mit|avec|con) "
_FLAG = "".join(f"|(?<=-[a-z]{{{length}}})" for length in range(2, 9))[1:]
_FORMS: tuple[Name, ...] = (
    _name(FORM, "auth", rf"(?:(?<=cli )|(?<=> )|(?<=^)|(?<=\n))auth (?:[a-z0-9_.-]{{1,32}} )?{_X}"),
    _name(FORM, "pass", rf"(?:{_FLAG})pass(?:wd)?[ =]{_X}"),
    _name(
        FORM,
        "echo ",
        rf"echo (?:-n )?(?:[\"'][a-z0-9_.-]{{1,32}}:)?{_X}[\"']?[ ]?(?:\|[ ]?[^\n|]{{0,80}}?(?:stdin|passwd|cryptsetup|luks|kinit|login|passphrase|openssl|gpg|unlock)|\))",  # noqa: E501
    ),
    _name(FORM, "printf ", rf"printf [\"']%s(?:\\n)?[\"'] {_X}[\"']?[ ]?\|"),
    _name(FORM, "<<<", rf"<<<[ ]?{_X}"),
    _name(FORM, 'send "', r"""send "([^"\s\\]{4,64}+)\\[rn]"""),
    _name(SURE_FORM, "secretstr", r"""secretstr(?:ing)?\(["']([^"'\r\n]{4,128}+)["']"""),
    *(
        _name(FORM, verb, rf"""{verb}\(["'](?:bearer |basic )?([^"'\s]{{8,512}}+)["'], ?forhttpheaderfield: ?["'](?:authorization|cookie|x-)""")  # noqa: E501
        for verb in ("setvalue", "addvalue")
    ),
    _name(SURE_FORM, "securestring", r"""securestring(?: -string)? ["']([^"'\r\n]{4,128}+)["']"""),
    _name(FORM, "sqlplus", r"""sqlplus (?:-[a-z]{1,8} ){0,3}["']?[a-z0-9_$#]{1,32}/([^\s@/"']{4,64}+)"""),
    _name(FORM, "pdp ", r"""pdp ["']?[a-z0-9_$#]{1,32}/([^\s@/"']{4,64}+)"""),
    _name(FORM, "airportnetwork", rf"airportnetwork [a-z0-9]{{1,8}} (?:\"[^\"\n]{{1,40}}\"|[^\s]{{1,40}}) {_X}"),
    _name(FORM, "rabbitmqctl", rf"rabbitmqctl [a-z_]{{4,20}} [^\s]{{1,40}} {_X}"),
    _name(FORM, "community", rf"community {_X}"),
    _name(FORM, "secret", rf"(?:(?<=enable )|(?<=[0-9] )|(?<=\n )|(?<=\n  ))secret(?: [0-9])? {_X}"),
    _name(FORM, "key", rf"(?:(?<=isakmp )|(?<=option )|(?<=security )|(?<=wpa)|(?<=shared-)|(?<=\]\.))key(?: [0-9])?(?: ascii-text)?[ =]{{1,2}}{_X}"),  # noqa: E501
    _name(FORM, "user", r"""user(?:name|pwd)?["']?[ ]?[=:][ ]?["']?(?!https?:)[a-z0-9_.@+-]{1,64}:(?!//)([^\s"'`<>|;,]{6,64}+)"""),  # noqa: E501
    _name(FORM, "user", r"""user [^\s]{1,40} (?:on |off )?>([^\s"'<>]{4,128}+)"""),
    _name(FORM, "ssid", rf"ssid[\"']?[ :=][^\n]{{1,40}}?[\n,;/]{{1,2}}[ ]{{0,4}}[\"']?(?:key|psk|schlussel|cle|clave|code)[\"']?[ ]?[:=][ ]?{_X}"),  # noqa: E501
    _name(SURE_FORM, 'value="', r"""value="([^"<>\n]{4,128}+)"[^<>\n]{0,80}?(?:name|id|type)="[a-z_-]{0,16}(?:pass|pw|psk)"""),  # noqa: E501
    _name(FORM, "keymaterial", rf"keymaterial[\"']?(?:>|[ ]?[:=][ ]?){_X}"),
    _name(FORM, "key content", rf"key content[ ]{{0,24}}:[ ]{{0,4}}{_X}"),
    _name(FORM, "schlusselinhalt", rf"schlusselinhalt[ ]{{0,24}}:[ ]{{0,4}}{_X}"),
    _name(FORM, "pptpd", rf"pptpd[ \t]{{1,8}}{_X}"),
    _name(FORM, "l2tpd", rf"l2tpd[ \t]{{1,8}}{_X}"),
    _name(SURE_FORM, '* "', r"""\* "([^"\s]{4,64}+)" \*"""),
    _name(FORM, "{plain}", rf"\{{plain\}}{_X}"),
    _name(SURE_FORM, ": eap", r""": eap "([^"\s]{4,64}+)\""""),
    _name(SURE_FORM, ": xauth", r""": xauth "([^"\s]{4,64}+)\""""),
    _name(FORM, "createuser", rf"createuser [^\s]{{1,40}} (?:md5|sha[0-9-]{{0,4}}) {_X}"),
    _name(FORM, "com2sec", rf"com2sec[ \t]{{1,4}}[^\s]{{1,40}}[ \t]{{1,4}}[^\s]{{1,40}}[ \t]{{1,4}}{_X}"),
    _name(FORM, "socks", rf"socks[45][ \t]{{1,4}}[0-9.]{{7,15}}[ \t]{{1,4}}[0-9]{{2,5}}[ \t]{{1,4}}[^\s]{{1,40}}[ \t]{{1,4}}{_X}"),  # noqa: E501
    _name(FORM, "user", rf"(?:(?<=^)|(?<=\n))user [^\s]{{1,40}} {_X}(?=[ ]?(?:[\r\n]|$))"),
    _name(FORM, "user", rf"users[\"']?[ ]?[:=][ ]?\{{?\s{{0,8}}[\"']?[a-z0-9_.@-]{{1,32}}[\"']?[ ]?[:=][ ]?{_X}"),
    _name(FORM, "login", rf"(?:(?<=^)|(?<=\n)|(?<=[0-9] )|(?<=auth ))login [^\s]{{1,64}} {_X}"),
    _name(FORM, "identif", rf"(?:(?<=nickserv )|(?<=:))identify (?:[a-z0-9_]{{1,20}} )?{_X}"),
    _name(FORM, "basicauth", rf"basicauth[^\n]{{0,24}}\n?[ ]{{0,8}}[a-z0-9_.-]{{1,32}}[: ]{_X}"),
    _name(FORM, "auth_basic", rf"auth_basic [a-z0-9_.-]{{1,32}}:{_X}"),
    _name(FORM, "unlock", rf"unlock(?:s|ed)?(?: it)? (?:with|using) {_X}"),
    _name(FORM, "ouvre", rf"ouvre avec {_X}"),
    _name(FORM, "opens with", rf"opens with {_X}"),
    _name(FORM, "crypted with", rf"crypted with {_X}"),
    _name(FORM, "protected with", rf"protected with {_X}"),
    _name(FORM, "admin", rf"(?:(?<![\w/.@-]))admin(?:istrator)?(?:(?:'s)?{_IS_USED}|[ ]?:[ ]?{_THEN}){_NO_HOST}"),
    _name(FORM, "root", rf"(?:(?<![\w/.@-]))root(?:(?:'s)?{_IS_USED}|[ ]?:[ ]?{_THEN}){_NO_HOST}"),
    _name(FORM, "login", rf"login (?:(?:admin|root|user)|(?:with|using)) {_X}"),
    _name(FORM, "login", rf"(?:(?<=vault )|(?<=hf )|(?<=fly ))login (?:-?-?token[ =])?{_X}"),
    _name(FORM, "asks", rf"asks?(?: for [a-z ]{{1,16}})?, (?:you )?(?:answer|type|enter|say|give it)(?: with)? {_X}"),
    _name(FORM, "fragt", rf"fragt, (?:antworte|tippe|gib|sag)(?: mit)? {_X}"),
    _name(FORM, '"p"', r""""p"[ ]?[:=][ ]?"([^"\s]{4,128}+)"""),
    _name(FORM, "'p'", r"""'p'[ ]?[:=][ ]?'([^'\s]{4,128}+)"""),
    _name(FORM, "logged in", rf"logged in(?: as [^\s]{{1,40}})? (?:with|using) {_X}"),
    _name(FORM, "log in", rf"log in(?: as [^\s]{{1,40}})? (?:with|using) {_X}"),
    _name(FORM, "sign", rf"sign(?:ed)? in(?: as [^\s]{{1,40}})? (?:with|using) {_X}"),
    _name(FORM, "conne", rf"connect(?:ed)? to [^\s]{{1,40}} (?:with|using) {_X}"),
    _name(FORM, "conne", rf"connect(?:e|er|e-toi|ez-vous) avec {_X}"),
    _name(FORM, "network", rf"network(?: is|:)? [^\s]{{1,40}}[ ,]{{1,2}}(?:and )?(?:the )?(?:key|code)(?: is|:)? {_X}"),
    _name(FORM, "ssh ", rf"ssh [^\s@]{{1,40}}@[^\s,]{{1,64}},? (?:with |\()(?:password )?{_X}"),
    _name(FORM, "sudo", rf"sudo(?: pass| pw)?(?: is| with| one is| asks?,?(?: type| enter)?| wants| use| c'est| ?:) {_X}"),  # noqa: E501
)  # fmt: skip
NAMES += _FORMS

# These have a letter that is not ASCII, although it is not seen here, or are written without a space before the value.
FAR_NAMES: tuple[Name, ...] = (
    _name(PASSWORD, "cle", rf"{_ALONE}cle (?:du |de )?(?:wifi|wpa|wlan|reseau){_OVER}"),
    _name(KEY, "cle", rf"{_ALONE}clef?s?{_OVER}", "key"),
    _name(PASSWORD, "hasl", rf"{_ALONE}hasl[oaeu]m?{_OVER}"),
    _name(KEY, "klucz", rf"{_ALONE}klucz[aeu]?{_OVER}", "key"),
    _name(PASSWORD, "losenord", "losenord(?:et)?"),
    _name(PASSWORD, "sifre", rf"{_ALONE}sifre(?:si|niz|m)?{_OVER}"),
    _name(PASSWORD, "jelszo", "jelszo(?:t|m)?"),
    *(
        _name(PASSWORD, word)
        for word in (
            "密码", "密碼", "口令", "暗号", "暗號", "通行码",
            "パスワード", "パスフレーズ", "パスコード", "合言葉",
            "비밀번호", "암호", "패스워드", "비번",
            "лозинка", "كلمة المرور", "كلمة السر", "رمز عبور", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน",
            "mật khẩu", "mat khau", "mạt khảu",
        )
    ),
    _name(PASSWORD, "парол", "парол[а-яё]{0,3}"),
    _name(PASSWORD, "κωδικο", "κωδικο[ςύσ]?"),
    _name(DOUBTFUL, "パス", "パス(?![ワフコ])"),
    *(_name(DOUBTFUL, word) for word in ("와이파이", "ワイファイ", "无线网", "無線網")),
    *(_name(PHRASE, word, kind="passphrase") for word in ("助记词", "助記詞", "口令", "シードフレーズ", "パスフレーズ", "시드 구문", "암호문")),  # noqa: E501
    *(_name(PIN, word, kind="pin") for word in ("暗証番号", "핀번호", "비밀 번호", "비밀번호", "密码")),
    *(_name(KEY, word, kind="secret") for word in ("恢复码", "恢復碼", "リカバリーコード", "回復キー", "バックアップコード", "복구 코드", "복구 키", "백업 코드")),  # noqa: E501
    *(_name(LOGIN, word) for word in ("账号", "帐号", "账户", "登录", "ログイン", "アカウント", "로그인", "계정", "логин", "доступ")),  # noqa: E501
    _name(KEY, "ключ", "ключ[а-яё]{0,3}", "key"),
    _name(KEY, "токен", "токен[а-яё]{0,3}", "token"),
    _name(KEY, "секрет", "секрет[а-яё]{0,3}", "secret"),
    *(
        _name(KEY, word, kind=kind)
        for kind, words in (
            ("key", ("密钥", "密鑰", "秘钥", "秘鑰", "私钥", "秘密鍵", "キー", "api 키", "api키", "비밀키", "비밀 키", "인증키", "인증 키", "액세스 키", "개인 키", "개인키", "시크릿 키", "해제 키")),  # noqa: E501
            ("token", ("令牌", "トークン", "토큰")),
            ("secret", ("凭证", "凭据", "憑證", "シークレット", "시크릿", "認証情報")),
        )
        for word in words
    ),
)  # fmt: skip

# With one of these behind it, a name is that of something else: `token_count`, `password_file`, `keyId`.
NOT_A_SECRET = frozenset(
    """
    id ids name names url urls uri uris file files path paths count counts type types len length limit limits size
    sizes min max policy policies field fields column columns expires expiry expiration expired ttl usage hint hints
    prompt prompts label labels format formats scheme regex pattern version ref refs reset resets manager managers hash
    hashes hashed digest algorithm algo rotation strength rule rules generator less izer ize protected error errors
    endpoint address store exchange bucket budget ring board word words space spaces frame frames stone note pair pairs
    dir folder provider class index stats per window
    """.split()  # noqa: SIM905
)

# `key` alone names anything. Behind one of these words it opens something.
KEY_OF = (
    "api", "access", "secret", "private", "auth", "account", "encryption", "signing", "master", "service",
    "subscription", "storage", "deploy", "app", "consumer", "admin", "client", "shared", "session", "jwt", "webhook",
    "bot", "license", "licence", "root", "host", "server", "function", "product", "activation", "serial", "integration",
    "preshared", "wpa", "wifi", "wlan", "project", "ingest", "ingestion", "write", "read", "personal", "platform", "live",  # noqa: E501
    "hmac", "aes", "cipher", "crypto", "decryption", "recovery", "security", "network", "unlock", "wallet", "cdn",
    "secrete", "acces", "privee", "privata", "privada", "secreta", "segreta", "zugriffs", "zugangs", "geheimer", "privater",  # noqa: E501
    "netzwerk", "netzwerksicherheits", "sicherheits", "apis", "dienst", "kunden", "appli",
)  # fmt: skip
# Behind one of these it opens nothing.
KEY_OF_NOTHING = frozenset(
    """
    primary foreign public cache object partition sort row hash idempotency issue translation composite natural
    surrogate candidate unique lookup map dict dictionary json index registry shortcut hot arrow enter return escape esc
    shift ctrl alt tab delete function group the a this that each every one any no its their right left wrong new old
    same other first last second fingerprint answer piano low turn dedup deduplication message routing s3 redis config
    sorting column host-key ssh
    """.split()  # noqa: SIM905
)

# --- words between a name and its value ---

# `password is`, `Passwort lautet`, `le mot de passe est`.
IS = (
    "is", "was", "are", "will be", "should be", "equals", "reads", "became", "has been", "ist", "lautet", "war", "heisst",  # noqa: E501
    "sei", "wird", "est", "etait", "devient", "sera", "es", "era", "e", "fica", "ficou", "foi", "jest", "je", "ar",
    "er", "это", "c'est", "est desormais", "steht auf", "là", "هي", "هو", "היא", "है", "คือ",
)  # fmt: skip
# `changed the password to`: what follows is a secret if it looks like one.
TO = (
    "to", "into", "as", "with", "auf", "zu", "in", "als", "mit", "a", "en", "par", "avec", "comme", "por", "para", "con",  # noqa: E501
    "com", "como", "from", "von", "desde", "depuis", "per", "come", "naar", "na", "til", "till", "on", "la", "это", "using", "via",  # noqa: E501
)  # fmt: skip
