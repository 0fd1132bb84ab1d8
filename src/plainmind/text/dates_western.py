"""How German, French, Spanish, Italian, Portuguese, Dutch and Russian name days, most specific first.

A weekday is the last one before today, unless its week is named with it; of every Friday none is meant.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.value import value
from plainmind.text.spans import (
    A_DIGIT,
    A_YEAR,
    YEAR,
    Either,
    HintedPattern,
    Match,
    Resolve,
    Span,
    ago,
    any_case,
    calendar_span,
    day,
    days_ago,
    days_before,
    months,
    no_day,
    recent_day,
    recent_days,
    recent_months,
    recent_season,
    rolling,
    weekday_before,
    weekday_of_week,
    weekend_before,
)


@value
class _Language:
    """How a language names days. Names are patterns, `{…}` stands for all that it calls so.

    `hints` are the words of which a question must have one, or a digit, to be worth a pattern.
    """

    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    seasons: Mapping[str, int]  # and the first month of each
    units: Mapping[str, str]
    counts: Mapping[str, int]
    days: Mapping[str, int]  # and how many days back each is
    ago: str
    rolling: str
    periods: Mapping[str, int]  # with {unit}, and how many periods back
    every: str  # weekday of all weeks
    in_week: Mapping[str, int]  # a weekday with its week, and how many weeks back that is
    weekday: str
    weekends: Mapping[str, bool]  # and whether the present one may be meant
    season: str
    last_season: str
    day_of_month: str
    month_of_year: str
    month: str
    feasts: Mapping[str, tuple[int, int, int]]  # month, day and how many days
    hints: Mapping[str, tuple[str, ...]]

    def dates(self) -> Iterable[tuple[tuple[str, ...], str, Resolve]]:
        """The kinds of words that must be there, patterns, and what they mean."""
        yield ("digit", "month"), self.day_of_month, self._day_of_month
        yield ("year", "month"), self.month_of_year, lambda m, _: months(int(m["year"]), self._month(m))
        for words, count in self.days.items():
            yield ("day",), words, days_ago(count)
        yield ("ago",), self.ago, lambda m, today: ago(today, self._count(m), self._unit(m))
        yield ("last",), self.rolling, lambda m, today: rolling(today, self._count(m), self._unit(m))
        for words, or_now in self.weekends.items():
            yield ("weekend",), words, _weekend(or_now=or_now)
        yield ("weekday",), self.every, no_day
        for words, back in self.in_week.items():
            yield ("weekday", "which"), words, self._in_week(back)
        for words, back in self.periods.items():
            yield ("unit", "which"), words, self._period(back)
        yield (
            ("weekday",),
            self.weekday,
            lambda m, today: weekday_before(today, self._weekday(m)),
        )
        yield (
            ("season", "last"),
            self.last_season,
            lambda m, today: recent_months(today, self._season(m), 3, over=True),
        )
        yield ("season", "in"), self.season, self._season_named
        for words, feast in self.feasts.items():
            yield ("feast",), words, _feast(*feast)
        yield (
            ("month", "in"),
            self.month,
            lambda m, today: recent_months(today, self._month(m), 1, over=False),
        )

    def patterns(self) -> tuple[HintedPattern, ...]:
        """The same, with names in place of their marks."""
        parts = {
            "month": f"(?P<month>{_any_of(self.months)})",
            "weekday": f"(?P<weekday>{_any_of(self.weekdays)})",
            "season": f"(?P<season>{_any_of(self.seasons)})",
            "unit": f"(?P<unit>{_any_of(self.units)})",
            "count": rf"(?P<count>\d{{1,3}}|{_any_of(self.counts)})",
            "day": r"(?P<day>\d{1,2})",
            "year": YEAR,
        }
        # Of a name that stands twice in a pattern, only one is ever matched.
        parts |= {
            f"{name}2": parts[name].replace(f"<{name}>", f"<{name}2>")
            for name in ("weekday", "unit", "count")
        }
        hints = {"digit": A_DIGIT, "year": A_YEAR, **self.hints}
        return tuple(
            (
                tuple(hints[kind] for kind in kinds),
                any_case(rf"\b{_with_parts(words, parts)}(?!\w)"),
                resolve,
            )
            for kinds, words, resolve in self.dates()
        )

    def _in_week(self, weeks_back: int) -> Resolve:
        return lambda match, today: weekday_of_week(today, self._weekday(match), weeks_back)

    def _period(self, periods_back: int) -> Resolve:
        return lambda match, today: calendar_span(self._unit(match), today, periods_back)

    def _day_of_month(self, match: Match, today: dt.date) -> Span | None:
        if match["year"]:
            return day(dt.date(int(match["year"]), self._month(match), int(match["day"])))
        return recent_day(today, self._month(match), int(match["day"]))

    def _season_named(self, match: Match, today: dt.date) -> Span | Either:
        if match["year"]:
            return months(int(match["year"]), self._season(match), 3)
        if match["this"]:
            return recent_months(today, self._season(match), 3, over=False)
        return recent_season(today, self._season(match))

    def _month(self, match: Match) -> int:
        return _place(self.months, match["month"]) + 1

    def _weekday(self, match: Match) -> int:
        return _place(self.weekdays, _first(match, "weekday"))

    def _season(self, match: Match) -> int:
        return list(self.seasons.values())[_place(list(self.seasons), match["season"])]

    def _unit(self, match: Match) -> str:
        return list(self.units.values())[_place(list(self.units), _first(match, "unit"))]

    def _count(self, match: Match) -> int:
        words = _first(match, "count")
        if words.isdecimal():
            return int(words)
        return list(self.counts.values())[_place(list(self.counts), words)]


def _weekend(*, or_now: bool) -> Resolve:
    return lambda _match, today: weekend_before(today, or_now=or_now)


def _feast(month: int, first: int, count: int) -> Resolve:
    return lambda _match, today: recent_days(today, month, first, count)


def _any_of(names: Iterable[str]) -> str:
    return "|".join(f"(?:{name})" for name in names)


def _with_parts(words: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        words = words.replace(f"{{{name}}}", part)
    return words.replace(" ", r"\s+")


def _first(match: Match, name: str) -> str:
    found = match.groupdict()
    words: str = found[name] or found[f"{name}2"]
    return words


def _place(names: Sequence[str], words: str) -> int:
    return next(at for at, name in enumerate(names) if pattern(name, IGNORECASE).fullmatch(words))


# Spaces stand for any white space; a name in braces for all that the language calls so.
_GERMAN = _Language(
    months=(
        "januar|jänner|jan", "februar|feb", "märz|maerz|marz", "april|apr", "mai", "juni|jun", "juli|jul",
        "august|aug", "september|sept?", "oktober|okt", "november|nov", "dezember|dez",
    ),
    weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"),
    seasons={"frühling|fruehling|frühjahr|fruehjahr": 3, "sommer": 6, "herbst": 9, "winter": 12},
    units={
        "stunden?": "hour", "tag(?:en|e)?": "day", "wochen?": "week", "monat(?:en|e|s)?": "month",
        "quartal": "quarter", "jahr(?:en|e|es)?": "year",
    },
    counts={
        "eine[mnr]?": 1, "zwei": 2, "drei|ein paar|paar|einigen": 3, "vier": 4, "fünf|fuenf": 5, "sechs": 6,
        "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf|zwoelf": 12, "vierzehn": 14,
    },
    days={"vorvorgestern": 3, "vorgestern": 2, "gestern": 1, "heute": 0, "übermorgen|uebermorgen": -2},
    ago="vor {count} {unit}",
    rolling="(?:letzten|vergangenen) {count} {unit}",
    periods={
        "vorletzte[nrsm]? {unit}": 2, "(?:letzte|vorige|vergangene)[nrsm]? {unit}": 1, "diese[nrsm]? {unit}": 0,
        "(?:nächste|naechste)[nrsm]? {unit}": -1,
    },
    every="(?:jede[nmr]?|immer) {weekday}",
    in_week={
        "{weekday} (?:letzter|voriger|vergangener) woche": 1,
        "(?:letzte|vorige|vergangene)[nr]? woche (?:am )?{weekday}": 1,
        "{weekday} dieser woche": 0,
        "diese woche (?:am )?{weekday}": 0,
        "(?:nächste|naechste|kommende)[nr]? {weekday}": -1,
    },
    weekday="(?:(?:am|(?:letzte|vorige|vergangene)[nmr]?) )?{weekday}(?:abend|morgen|(?:vor|nach)?mittag|nacht)?",
    weekends={
        "(?:letzte|vorige|vergangene)[snm]? wochenende": False,
        "(?:am|übers|uebers|dieses|das|an diesem) wochenende": True,
    },
    season="(?:im|(?P<this>diese[nsm]?)) {season}(?: {year})?",
    last_season="(?:letzte|vorige|vergangene)[nms]? {season}",
    day_of_month="{day}\\. ?{month}(?: {year})?",
    month_of_year="{month} {year}",
    month="(?:(?:im|anfang|ende|mitte|letzte[nm]) |(?<=seit\\s)|(?<=bis\\s)|(?<=vor\\s)){month}",
    feasts={"weihnachten": (12, 24, 3), "silvester": (12, 30, 3)},
    hints={
        "month": (
            *("januar", "jänner", "jan ", "feb", "märz", "maerz", "marz", "apr", "mai", "jun", "jul", "aug", "sep"),
            *("okt", "nov", "dez"),
        ),
        "day": ("gestern", "heute", "bermorgen"),
        "ago": ("vor ",),
        "last": ("letzte", "vorige", "vergangene"),
        "weekend": ("wochenende",),
        "weekday": ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonnabend", "sonntag"),
        "which": ("letzte", "vorige", "vergangene", "diese", "chste", "kommende"),
        "unit": ("stunde", "tag", "woche", "monat", "quartal", "jahr"),
        "season": ("frühling", "fruehling", "frühjahr", "fruehjahr", "sommer", "herbst", "winter"),
        "in": ("im ", "diese", "anfang", "ende ", "mitte", "seit", "bis ", "vor ", "letzte"),
        "feast": ("weihnachten", "silvester"),
    },
)  # fmt: skip

_FRENCH = _Language(
    months=(
        "janvier", "f[ée]vrier", "mars", "avril", "mai", "juin", "juillet", "ao[ûu]t", "septembre", "octobre",
        "novembre", "d[ée]cembre",
    ),
    weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    seasons={"printemps": 3, "[ée]t[ée]": 6, "automne": 9, "hiver": 12},
    units={
        "heures?": "hour", "jours?": "day", "semaines?": "week", "mois": "month", "trimestre": "quarter",
        "ans?|ann[ée]es?": "year",
    },
    counts={
        "une?": 1, "deux": 2, "trois|quelques": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9,
        "dix": 10, "onze": 11, "douze": 12, "quinze": 15,
    },
    days={"avant-hier": 2, "aujourd'hui|ce (?:matin|soir)": 0, "demain": -1},
    ago="il y a {count} {unit}",
    rolling="(?:(?:ces|les|des) )?(?:{count} derni[èe]re?s|derni[èe]re?s {count2}) {unit}",
    periods={
        "{unit} (?:derni[èe]re?|pass[ée]e?)": 1,
        "(?:cette|ce|cet) {unit}": 0,
        "{unit} prochaine?": -1,
        "(?:l')?avant-derni[èe]re? {unit}": 2,
    },
    every="(?:tous les|chaque) {weekday}s?",
    in_week={
        "{weekday} de la semaine (?:derni[èe]re|pass[ée]e)": 1,
        "{weekday} de cette semaine": 0,
        "ce {weekday}": 0,
        "{weekday} prochain": -1,
    },
    weekday="{weekday}(?: (?:dernier|pass[ée]))?",
    weekends={"week-?end (?:dernier|pass[ée])": False, "(?:ce|le|du|pendant le) week-?end": True},
    season="(?:au|en|(?P<this>cet|ce)) {season}(?: {year})?",
    last_season="(?:l'|le )?{season} (?:dernier|pass[ée])",
    day_of_month="{day}(?:er)? {month}(?: {year})?",
    month_of_year="{month} {year}",
    month="(?:(?:en|au mois de|d[ée]but|fin) |(?<=depuis\\s)|(?<=avant\\s)){month}",
    feasts={"no[ëe]l": (12, 24, 3)},
    hints={
        "month": (
            *("janvier", "vrier", "mars", "avril", "mai", "juin", "juillet", "août", "aout", "embre", "octobre"),
        ),
        "day": ("avant-hier", "aujourd", "ce matin", "ce soir", "demain"),
        "ago": ("il y a",),
        "last": ("dernier", "dernièr", "passé", "passe"),
        "weekend": ("week-end", "ce weekend", "le weekend", "du weekend"),
        "weekday": ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        "which": ("dernier", "dernièr", "passé", "passe", "ce ", "cet", "prochain"),
        "unit": ("heure", "jour", "semaine", "mois", "trimestre", "an", "année"),
        "season": ("printemps", "été", "ete", "automne", "hiver"),
        "in": ("au ", "en ", "ce ", "cet ", "début", "debut", "fin ", "depuis", "avant"),
        "feast": ("noël", "noel"),
    },
)  # fmt: skip

_SPANISH = _Language(
    months=(
        "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "sep?tiembre", "octubre",
        "noviembre", "diciembre",
    ),
    weekdays=("lunes", "martes", "mi[ée]rcoles", "jueves", "viernes", "s[áa]bado", "domingo"),
    seasons={"primavera": 3, "verano": 6, "oto[ñn]o": 9, "invierno": 12},
    units={
        "horas?": "hour", "d[íi]as?": "day", "semanas?": "week", "mes(?:es)?": "month", "trimestre": "quarter",
        "a[ñn]os?": "year",
    },
    counts={
        "una?": 1, "dos": 2, "tres|unos|unas|algunos|algunas": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7,
        "ocho": 8, "nueve": 9, "diez": 10, "once": 11, "doce": 12, "quince": 15,
    },
    days={
        "anteayer|antes de ayer": 2, "ayer|anoche": 1, "hoy|esta (?:ma[ñn]ana|tarde|noche)": 0, "pasado ma[ñn]ana": -2,
    },
    ago="hace {count} {unit}",
    rolling="(?:[úu]ltim|pasad)[oa]s {count} {unit}",
    periods={
        "{unit} (?:pasad[oa]|anterior)": 1,
        "[úu]ltim[oa] {unit}": 1,
        "est[ea] {unit}": 0,
        "{unit} que viene|pr[óo]xim[oa] {unit2}": -1,
        "{unit} antepasad[oa]": 2,
    },
    every="(?:todos los|cada|los) {weekday}s?",
    in_week={
        "{weekday} de la semana pasada": 1,
        "{weekday} de esta semana": 0,
        "este {weekday}": 0,
        "(?:pr[óo]ximo {weekday}|{weekday2} que viene)": -1,
    },
    weekday="(?:el (?:pasado )?)?{weekday}(?: pasado)?",
    weekends={
        "(?:fin de semana pasado|[úu]ltimo fin de semana)": False,
        "(?:este|el|durante el|en el) (?:fin de semana|finde)": True,
    },
    season="(?:en|(?P<this>est[ea])) (?:la |el )?{season}(?: (?:de )?{year})?",
    last_season="{season} pasad[oa]",
    day_of_month="{day} de {month}(?: (?:de |del )?{year})?",
    month_of_year="{month} (?:de |del )?{year}",
    month="(?:(?:en|a principios de|a finales de) |(?<=desde\\s)|(?<=hasta\\s)|(?<=antes\\sde\\s)){month}",
    feasts={"navidad(?:es)?": (12, 24, 3), "nochevieja": (12, 30, 3)},
    hints={
        "month": (
            *("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "tiembre", "octubre"),
            *("noviembre", "diciembre"),
        ),
        "day": ("ayer", "anoche", "hoy", "esta ", "pasado ma"),
        "ago": ("hace ",),
        "last": ("ltim", "pasad"),
        "weekend": ("fin de semana", "finde"),
        "weekday": ("lunes", "martes", "rcoles", "jueves", "viernes", "sábado", "sabado", "domingo"),
        "which": ("pasad", "anterior", "ltim", "este", "esta", "viene", "xim"),
        "unit": ("hora", "día", "dia", "semana", "mes", "trimestre", "año", "ano"),
        "season": ("primavera", "verano", "otoño", "otono", "invierno"),
        "in": ("en ", "este", "esta", "desde", "hasta", "antes", "principios", "finales"),
        "feast": ("navidad", "nochevieja"),
    },
)  # fmt: skip

_ITALIAN = _Language(
    months=(
        "gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre",
        "novembre", "dicembre",
    ),
    weekdays=("luned[ìi]", "marted[ìi]", "mercoled[ìi]", "gioved[ìi]", "venerd[ìi]", "sabato", "domenica"),
    seasons={"primavera": 3, "estate": 6, "autunno": 9, "inverno": 12},
    units={
        "or[ae]": "hour", "giorn[oi]": "day", "settiman[ae]": "week", "mes[ei]": "month", "trimestr[ei]": "quarter",
        "ann[oi]": "year",
    },
    counts={
        "un[ao]?": 1, "due|un paio di": 2, "tre|qualche|alcun[ie]|poch[ie]": 3, "quattro": 4, "cinque": 5, "sei": 6,
        "sette": 7, "otto": 8, "nove": 9, "dieci": 10, "undici": 11, "dodici": 12, "quindici": 15,
    },
    days={
        "(?:l['’])?altro ?ieri|ieri l['’]altro|avantieri": 2, "ieri(?: (?:mattina|pomeriggio|sera|notte))?": 1,
        "oggi|stamattina|stasera|questa (?:mattina|sera|notte)": 0, "dopodomani": -2, "domani": -1,
    },
    ago="{count} {unit} fa",
    rolling="(?:ultim|scors)[ie] {count} {unit}",
    periods={
        "{unit} (?:scors|passat)[oa]": 1,
        "(?:scors|passat)[oa] {unit}": 1,
        "quest(?:[oa] |['’]){unit}": 0,
        "{unit} prossim[oa]|prossim[oa] {unit2}": -1,
    },
    every="(?:ogni|tutti i|tutte le|di) {weekday}",
    in_week={
        "{weekday} della (?:settimana scorsa|scorsa settimana)": 1,
        "{weekday} di questa settimana": 0,
        "quest[oa] {weekday}": 0,
        "(?:prossim[oa] {weekday}|{weekday2} prossim[oa])": -1,
    },
    weekday="(?:scors[oa] )?{weekday}(?: (?:scors|passat)[oa])?(?: (?:mattina|pomeriggio|sera))?",
    weekends={
        "(?:scorso (?:fine settimana|week-?end)|(?:fine settimana|week-?end) (?:scorso|passato))": False,
        "(?:nel|questo|il|durante il) (?:fine settimana|week-?end)": True,
    },
    season="(?:in |(?P<this>quest(?:[ao] |['’]))|nella |nell['’]|d['’]){season}(?: (?:del )?{year})?",
    last_season="(?P<before>scors[oa] )?{season}(?(before)| (?:scors|passat)[oa])",
    day_of_month="{day}[°º]? {month}(?: (?:del )?{year})?",
    month_of_year="{month} (?:del )?{year}",
    month="(?:(?:a|in|inizio|fine|metà) |(?<=da\\s)|(?<=prima\\sdi\\s)|(?<=fino\\sa\\s)){month}",
    feasts={"natale": (12, 24, 3), "capodanno|san silvestro": (12, 30, 3)},
    hints={
        "month": (
            *("gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre"),
            *("ottobre", "novembre", "dicembre"),
        ),
        "day": ("ieri", "oggi", "stamattina", "stasera", "questa ", "domani"),
        "ago": (" fa",),
        "last": ("ultim", "scors", "passat"),
        "weekend": ("fine settimana", "week-end", "weekend"),
        "weekday": ("luned", "marted", "mercoled", "gioved", "venerd", "sabato", "domenica"),
        "which": ("scors", "passat", "quest", "prossim"),
        "unit": ("ora", "ore", "giorn", "settiman", "mese", "mesi", "trimestr", "anno", "anni"),
        "season": ("primavera", "estate", "autunno", "inverno"),
        "in": ("a ", "in ", "quest", "nell", "d'", "d’", "da ", "di ", "fine ", "metà", "inizio"),
        "feast": ("natale", "capodanno", "silvestro"),
    },
)  # fmt: skip

# The days from Monday to Friday are counted, "a second one", and not days alone.
_PORTUGUESE = _Language(
    months=(
        "janeiro", "fevereiro", "mar[çc]o", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro",
        "novembro", "dezembro",
    ),
    weekdays=("segunda", "ter[çc]a", "quarta", "quinta", "sexta", "s[áa]bado", "domingo"),
    seasons={"primavera": 3, "ver[ãa]o": 6, "outono": 9, "inverno": 12},
    units={
        "horas?": "hour", "dias?": "day", "semanas?": "week", "m[êe]s(?:es)?": "month", "trimestres?": "quarter",
        "anos?": "year",
    },
    counts={
        "uma?": 1, "dois|duas": 2, "tr[êe]s|algun?s|algumas|poucos|poucas": 3, "quatro": 4, "cinco": 5, "seis": 6,
        "sete": 7, "oito": 8, "nove": 9, "dez": 10, "onze": 11, "doze": 12, "quinze": 15,
    },
    days={
        "anteontem": 2, "ontem": 1, "hoje|esta (?:manh[ãa]|tarde|noite)": 0, "depois de amanh[ãa]": -2,
        "amanh[ãa]": -1,
    },
    ago="(?:(?:h[áa]|faz) {count} {unit}(?: atr[áa]s)?|{count2} {unit2} atr[áa]s)",
    rolling="(?:[úu]ltim|passad)[oa]s {count} {unit}",
    periods={
        "{unit} passad[oa]": 1,
        "[úu]ltim[oa] {unit}": 1,
        "n?es[ts][ea] {unit}": 0,
        "{unit} que vem|pr[óo]xim[oa] {unit2}": -1,
        "{unit} retrasad[oa]": 2,
    },
    every="(?:toda|todo|todas as|todos os|cada|[àa]s|aos) {weekday}s?(?:[- ]feiras?)?",
    in_week={
        "{weekday}(?:[- ]feira)? da semana passada": 1,
        "{weekday}(?:[- ]feira)? des[ts]a semana": 0,
        "n?est[ae] {weekday}(?:[- ]feira)?": 0,
        "(?:pr[óo]xim[oa] {weekday}(?:[- ]feira)?|{weekday2}(?:[- ]feira)? que vem)": -1,
    },
    weekday=(
        "(?:(?:n[oa]|[úu]ltim[oa]) {weekday}(?! vez)(?:[- ]feira)?(?: passad[oa])?"
        "|{weekday2}(?:[- ]feira(?: passada)?| passad[oa]))"
    ),
    weekends={
        "(?:fim de semana passado|[úu]ltimo fim de semana)": False,
        "(?:n?es[ts]e|no|durante o) fim de semana": True,
    },
    season="(?:(?P<this>n?es[ts][ea])|n[oa]) {season}(?: de {year})?",
    last_season="{season} passad[oa]",
    day_of_month="{day}º? de {month}(?: de {year})?",
    month_of_year="{month} (?:de )?{year}",
    month="(?:(?:em|in[íi]cio de|fim de) |(?<=desde\\s)|(?<=at[ée]\\s)|(?<=antes\\sde\\s)){month}",
    feasts={"natal": (12, 24, 3), "r[ée]veillon": (12, 30, 3)},
    hints={
        "month": (
            *("janeiro", "fevereiro", "março", "marco", "abril", "maio", "junho", "julho", "agosto", "setembro"),
            *("outubro", "novembro", "dezembro"),
        ),
        "day": ("ontem", "hoje", "esta ", "amanh"),
        "ago": ("há ", "ha ", "faz ", "atr"),
        "last": ("ltim", "passad"),
        "weekend": ("fim de semana",),
        "weekday": ("segunda", "terça", "terca", "quarta", "quinta", "sexta", "sábado", "sabado", "domingo"),
        "which": ("passad", "ltim", "est", "ess", "que vem", "xim", "retrasad"),
        "unit": ("hora", "dia", "semana", "mês", "mes", "trimestre", "ano"),
        "season": ("primavera", "verão", "verao", "outono", "inverno"),
        "in": ("em ", "no ", "na ", "est", "ess", "desde", "até", "ate ", "antes", "fim ", "cio de"),
        "feast": ("natal", "veillon"),
    },
)  # fmt: skip

# "Morgen" is a morning in German, and stays one.
_DUTCH = _Language(
    months=(
        "januari|jan", "februari|feb", "maart|mrt", "april|apr", "mei", "juni|jun", "juli|jul", "augustus|aug",
        "september|sept?", "oktober|okt", "november|nov", "december|dec",
    ),
    weekdays=("maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"),
    seasons={"lente|voorjaar": 3, "zomer": 6, "herfst|najaar": 9, "winter": 12},
    units={
        "uur|uren": "hour", "dag(?:en)?": "day", "week|weken": "week", "maand(?:en)?": "month",
        "kwartaal": "quarter", "jaar|jaren": "year",
    },
    counts={
        "een paar|paar|enkele": 3, "een|één": 1, "twee": 2, "drie": 3, "vier": 4, "vijf": 5, "zes": 6, "zeven": 7,
        "acht": 8, "negen": 9, "tien": 10, "elf": 11, "twaalf": 12, "veertien": 14,
    },
    days={
        "eergisteren": 2, "gisteren(?:avond|ochtend|middag|nacht)?": 1,
        "vandaag|van(?:morgen|ochtend|middag|avond)": 0, "overmorgen": -2,
    },
    ago="{count} {unit} geleden",
    rolling="(?:afgelopen|laatste|voorbije) {count} {unit}",
    periods={
        "(?:vorige?|afgelopen) {unit}": 1, "(?:deze|dit) {unit}": 0, "volgende? {unit}": -1, "eervorige? {unit}": 2,
    },
    every="(?:elke|iedere) {weekday}",
    in_week={
        "{weekday} (?:van )?vorige week": 1,
        "vorige week (?:op )?{weekday}": 1,
        "{weekday} (?:van )?deze week": 0,
        "deze {weekday}": 0,
        "(?:volgende|komende) {weekday}": -1,
    },
    weekday="(?:(?:op|vorige|afgelopen) )?{weekday}(?:avond|ochtend|middag|morgen|nacht)?",
    weekends={"(?:vorig|afgelopen) weekend": False, "(?:in het|dit|het|tijdens het) weekend": True},
    season="(?:in de|in het|(?P<this>deze|dit)) {season}(?: (?:van )?{year})?",
    last_season="(?:vorige?|afgelopen) {season}",
    day_of_month="{day} {month}(?: {year})?",
    month_of_year="{month} {year}",
    month="(?:(?:in|begin|eind|midden) |(?<=sinds\\s)|(?<=tot\\s)|(?<=voor\\s)){month}",
    feasts={"kerst(?:mis)?": (12, 24, 3), "oudjaar|oud en nieuw": (12, 30, 3)},
    hints={
        "month": (
            *("januari", "jan ", "feb", "maart", "mrt", "apr", "mei", "jun", "jul", "aug", "sep", "okt", "nov", "dec"),
        ),
        "day": ("gisteren", "vandaag", "vanmorgen", "vanochtend", "vanmiddag", "vanavond", "overmorgen"),
        "ago": ("geleden",),
        "last": ("afgelopen", "laatste", "voorbije", "vorig"),
        "weekend": ("weekend",),
        "weekday": ("maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"),
        "which": ("vorig", "afgelopen", "deze", "dit ", "volgend", "komende"),
        "unit": ("uur", "uren", "dag", "week", "weken", "maand", "kwartaal", "jaar", "jaren"),
        "season": ("lente", "voorjaar", "zomer", "herfst", "najaar", "winter"),
        "in": ("in ", "deze", "dit ", "begin ", "eind ", "midden ", "sinds", "tot ", "voor "),
        "feast": ("kerst", "oudjaar", "oud en nieuw"),
    },
)  # fmt: skip

# Names are declined: in the forms that say when.
_RUSSIAN = _Language(
    months=(
        "январ[ьяе]", "феврал[ьяе]", "март[ае]?", "апрел[ьяе]", "ма[йяе]", "июн[ьяе]", "июл[ьяе]", "август[ае]?",
        "сентябр[ьяе]", "октябр[ьяе]", "ноябр[ьяе]", "декабр[ьяе]",
    ),
    weekdays=(
        "понедельник[ау]?", "вторник[ау]?", "сред[уы]", "четверг[ау]?", "пятниц[ауые]", "суббот[ауые]",
        "воскресень[ея]",
    ),
    seasons={"весной": 3, "летом": 6, "осенью": 9, "зимой": 12},
    units={
        "час(?:а|ов)?": "hour", "день|дня|дней": "day", "недел[яюие]|недель": "week", "месяц(?:а|ев|е)?": "month",
        "квартал(?:а|е|ов)?": "quarter", "год(?:а|у|ов)?|лет": "year",
    },
    counts={
        "один|одну": 1, "дв[ае]|пару": 2, "три|несколько": 3, "четыре": 4, "пять": 5, "шесть": 6, "семь": 7,
        "восемь": 8, "девять": 9, "десять": 10, "одиннадцать": 11, "двенадцать": 12,
    },
    days={"позавчера": 2, "вчера": 1, "сегодня": 0, "послезавтра": -2, "завтра": -1},
    ago="{count} {unit} назад",
    rolling="последни[ехй] {count} {unit}",
    periods={
        "{unit} назад": 1, "прошл(?:ой|ую|ая|ый|ое|ом|ого) {unit}": 1, "эт(?:ой|у|а|от|ом|ого) {unit}": 0,
        "следующ(?:ей|ую|ая|ий|ем|его) {unit}": -1, "позапрошл(?:ой|ую|ый|ом|ого) {unit}": 2,
    },
    every="кажд(?:ый|ую|ое) {weekday}",
    in_week={
        "{weekday} (?:на )?прошлой недел[еи]": 1,
        "прошлой неделе во? {weekday}": 1,
        "{weekday} на этой неделе": 0,
        "эт(?:от|у|о) {weekday}": 0,
        "следующ(?:ий|ую|ее) {weekday}": -1,
    },
    weekday="(?:прошл(?:ый|ую|ое) )?{weekday}",
    weekends={
        "прошлы(?:е|х|ми) выходны(?:е|х|ми)": False,
        "(?:на|за|эти|этих) выходны(?:е|х)": True,
    },
    season="(?P<this>эт(?:ой|им) )?{season}(?: {year}(?: года)?)?",
    last_season="прошл(?:ой|ым) {season}",
    day_of_month="{day} {month}(?: {year}(?: года)?)?",
    month_of_year="{month} {year}(?: года)?",
    month="(?:(?:в|начале|конце|середине) |(?<=с\\s)|(?<=до\\s)|(?<=после\\s)){month}",
    feasts={"рождество": (1, 6, 2), "новый год": (12, 30, 3)},
    hints={
        "month": (
            *("январ", "феврал", "март", "апрел", "май", "мая", "мае", "июн", "июл", "август", "сентябр", "октябр"),
            *("ноябр", "декабр"),
        ),
        "day": ("вчера", "сегодня", "завтра"),
        "ago": ("назад",),
        "last": ("последни", "прошл"),
        "weekend": ("выходны",),
        "weekday": ("понедельник", "вторник", "сред", "четверг", "пятниц", "суббот", "воскресень"),
        "which": ("прошл", "эт", "следующ", "назад"),
        "unit": ("час", "ден", "дн", "недел", "месяц", "квартал", "год", "лет"),
        "season": ("весной", "летом", "осенью", "зимой"),
        "in": ("в ", "начале", "конце", "середине", "с ", "до ", "после", "весной", "летом", "осенью", "зимой"),
        "feast": ("рождество", "новый год"),
    },
)  # fmt: skip

_LANGUAGES = (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _RUSSIAN)


# Germans say "hier" of where they are.
_FRENCH_WORD = any_case(
    r"\b(?:le|la|les|que|quoi|qui|quand|avons|avez|ai|nous|vous|je|il|est|dit|fait|pour|avec|dans|soir|matin)\b"
    r"|\b(?:j|qu|d)'"
)


def _yesterday_in_french(match: Match, today: dt.date) -> Span | None:
    return day(days_before(today, 1)) if _FRENCH_WORD.search(match.string) else None


@cache
def other_western_dates() -> tuple[HintedPattern, ...]:
    """Those of all of them."""
    known = [language.patterns() for language in _LANGUAGES]
    # A month of one language is that of another one too, and a day of it says more than the month and its year.
    days, of_years = [own[0] for own in known], [own[1] for own in known]
    others = [each for own in known for each in own[2:]]
    return (*days, *of_years, *others, ((("hier",),), any_case(r"\bhier\b"), _yesterday_in_french))
