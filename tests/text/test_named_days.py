"""Days as people name them, in eleven languages, asked on a Wednesday."""

from __future__ import annotations

import datetime as dt

import pytest

from plainmind.text.front_matter import day_of_headings
from plainmind.text.terms import mentioned_days

TODAY = dt.date(2026, 11, 18)  # a Wednesday; the week is 16 to 22 November

PHRASES = {
    # English
    "what did we decide on Friday?": "2026-11-13",
    "on wednesday": "2026-11-11",
    "Friday's meeting": "2026-11-13",
    "who called Tuesday afternoon": "2026-11-17",
    "last Monday": "2026-11-16",
    "this Friday": "2026-11-20",
    "next Monday": "2026-11-23",
    "Monday of last week": "2026-11-09",
    "tuesday this week": "2026-11-17",
    "two days ago": "2026-11-16",
    "an hour ago": "2026-11-18",
    "in the last three days": ("2026-11-15", "2026-11-18"),
    "in the last 24 hours": ("2026-11-17", "2026-11-18"),
    "in the past few weeks": ("2026-10-28", "2026-11-18"),
    "the other day": ("2026-11-11", "2026-11-18"),
    "this week": ("2026-11-16", "2026-11-22"),
    "next week": ("2026-11-23", "2026-11-29"),
    "the week before last": ("2026-11-02", "2026-11-08"),
    "the month before last": ("2026-09-01", "2026-09-30"),
    "a week ago today": "2026-11-11",
    "on the 3rd of this month": "2026-11-03",
    "the 30th of last month": "2026-10-30",
    "over the weekend": ("2026-11-14", "2026-11-15"),
    "what happened at the weekend": ("2026-11-14", "2026-11-15"),
    "last weekend": ("2026-11-14", "2026-11-15"),
    "in spring": ("2026-03-01", "2026-05-31"),
    "during the winter": ("2025-12-01", "2026-02-28"),
    "before my birthday in May": ("2026-01-30", "2026-05-31"),
    "before March 5": ("2026-02-19", "2026-03-05"),
    "until yesterday": ("2026-11-03", "2026-11-17"),
    "on the Sunday before October 25, 2025": ("2025-10-11", "2025-10-25"),
    "on Monday 19 October": "2026-10-19",
    "on Monday, the 19th of October": "2026-10-19",
    "2026-10-19 (Monday)": "2026-10-19",
    "10月19日星期一": "2026-10-19",
    "am Montag, den 19. Oktober": "2026-10-19",
    "from 3 March to 5 March": ("2026-03-03", "2026-03-05"),
    "between Monday and Friday": ("2026-11-09", "2026-11-13"),
    "from Friday to Monday": ("2026-11-13", "2026-11-16"),
    "2026-10-19 – 2026-10-25": ("2026-10-19", "2026-10-25"),
    "between May and July": ("2026-05-01", "2026-07-31"),
    "von Montag bis Freitag": ("2026-11-09", "2026-11-13"),
    "del lunes al viernes": ("2026-11-09", "2026-11-13"),
    "3月1日到3月5日": ("2026-03-01", "2026-03-05"),
    "月曜日から金曜日まで": ("2026-11-09", "2026-11-13"),
    "last weekend before 10 April 2026": ("2026-03-27", "2026-04-10"),
    "since Friday": ("2026-11-13", "2026-11-18"),
    "since the weekend": ("2026-11-14", "2026-11-18"),
    "after October 20": ("2026-10-20", "2026-11-18"),
    "at Christmas": ("2025-12-24", "2025-12-26"),
    "on New Year's Eve": ("2025-12-30", "2026-01-01"),
    "tomorrow": "2026-11-19",
    # German
    "was haben wir gestern beschlossen?": "2026-11-17",
    "vorgestern": "2026-11-16",
    "heute Morgen": "2026-11-18",
    "am Freitag": "2026-11-13",
    "was war am 17. November?": "2026-11-17",
    "am 3. April": "2026-04-03",
    "der 1. September 2025": "2025-09-01",
    "12. August": "2026-08-12",
    "am 8. Oktober": "2026-10-08",
    "seit dem 17. Nov.": ("2026-11-17", "2026-11-18"),
    "den 17. november": "2026-11-17",
    "am 17.11.": "2026-11-17",
    "bis zum 5.3.": ("2026-02-19", "2026-03-05"),
    "letzten Montag": "2026-11-16",
    "Freitagabend": "2026-11-13",
    "Freitag letzter Woche": "2026-11-13",
    "letzte Woche am Dienstag": "2026-11-10",
    "diese Woche Montag": "2026-11-16",
    "nächsten Freitag": "2026-11-27",
    "vor zwei Tagen": "2026-11-16",
    "vor 3 Tagen": "2026-11-15",
    "vor drei Wochen": ("2026-10-25", "2026-10-31"),
    "vor einem Monat": ("2026-10-01", "2026-10-31"),
    "in den letzten fünf Tagen": ("2026-11-13", "2026-11-18"),
    "diese Woche": ("2026-11-16", "2026-11-22"),
    "letzten Monat": ("2026-10-01", "2026-10-31"),
    "vorletzte Woche": ("2026-11-02", "2026-11-08"),
    "letztes Jahr": ("2025-01-01", "2025-12-31"),
    "am Wochenende": ("2026-11-14", "2026-11-15"),
    "letztes Wochenende": ("2026-11-14", "2026-11-15"),
    "im Frühling": ("2026-03-01", "2026-05-31"),
    "letzten Winter": ("2025-12-01", "2026-02-28"),
    "im Sommer 2024": ("2024-06-01", "2024-08-31"),
    "im Mai": ("2026-05-01", "2026-05-31"),
    "seit März": ("2026-03-01", "2026-11-18"),
    "3. März 2025": "2025-03-03",
    "am 5. Dezember": "2025-12-05",
    "Oktober 2025": ("2025-10-01", "2025-10-31"),
    "an Weihnachten": ("2025-12-24", "2025-12-26"),
    # French
    "qu'avons-nous décidé hier ?": "2026-11-17",
    "avant-hier": "2026-11-16",
    "aujourd'hui": "2026-11-18",
    "vendredi": "2026-11-13",
    "lundi dernier": "2026-11-16",
    "vendredi de la semaine dernière": "2026-11-13",
    "ce vendredi": "2026-11-20",
    "il y a deux jours": "2026-11-16",
    "il y a trois semaines": ("2026-10-25", "2026-10-31"),
    "ces trois derniers jours": ("2026-11-15", "2026-11-18"),
    "cette semaine": ("2026-11-16", "2026-11-22"),
    "la semaine dernière": ("2026-11-09", "2026-11-15"),
    "le mois dernier": ("2026-10-01", "2026-10-31"),
    "ce week-end": ("2026-11-14", "2026-11-15"),
    "le week-end dernier": ("2026-11-14", "2026-11-15"),
    "au printemps": ("2026-03-01", "2026-05-31"),
    "l'été dernier": ("2026-06-01", "2026-08-31"),
    "en mars": ("2026-03-01", "2026-03-31"),
    "le 3 mars 2025": "2025-03-03",
    "depuis août 2025": ("2025-08-01", "2026-11-18"),
    "à Noël": ("2025-12-24", "2025-12-26"),
    # Spanish
    "¿qué decidimos ayer?": "2026-11-17",
    "anteayer": "2026-11-16",
    "hoy": "2026-11-18",
    "el viernes": "2026-11-13",
    "el lunes pasado": "2026-11-16",
    "el martes de la semana pasada": "2026-11-10",
    "este viernes": "2026-11-20",
    "el viernes que viene": "2026-11-27",
    "hace dos días": "2026-11-16",
    "hace tres semanas": ("2026-10-25", "2026-10-31"),
    "en los últimos tres días": ("2026-11-15", "2026-11-18"),
    "esta semana": ("2026-11-16", "2026-11-22"),
    "la semana pasada": ("2026-11-09", "2026-11-15"),
    "el mes pasado": ("2026-10-01", "2026-10-31"),
    "la semana que viene": ("2026-11-23", "2026-11-29"),
    "el fin de semana": ("2026-11-14", "2026-11-15"),
    "el fin de semana pasado": ("2026-11-14", "2026-11-15"),
    "en primavera": ("2026-03-01", "2026-05-31"),
    "el verano pasado": ("2026-06-01", "2026-08-31"),
    "en mayo": ("2026-05-01", "2026-05-31"),
    "el 3 de marzo de 2025": "2025-03-03",
    "desde octubre de 2025": ("2025-10-01", "2026-11-18"),
    "en Navidad": ("2025-12-24", "2025-12-26"),
    # Italian
    "cosa abbiamo deciso ieri?": "2026-11-17",
    "ieri sera": "2026-11-17",
    "l'altro ieri": "2026-11-16",
    "oggi": "2026-11-18",
    "domani": "2026-11-19",
    "venerdì": "2026-11-13",
    "lunedì scorso": "2026-11-16",
    "martedi della settimana scorsa": "2026-11-10",
    "questo venerdì": "2026-11-20",
    "venerdì prossimo": "2026-11-27",
    "due giorni fa": "2026-11-16",
    "tre settimane fa": ("2026-10-25", "2026-10-31"),
    "un mese fa": ("2026-10-01", "2026-10-31"),
    "negli ultimi tre giorni": ("2026-11-15", "2026-11-18"),
    "questa settimana": ("2026-11-16", "2026-11-22"),
    "la settimana scorsa": ("2026-11-09", "2026-11-15"),
    "lo scorso mese": ("2026-10-01", "2026-10-31"),
    "quest'anno": ("2026-01-01", "2026-12-31"),
    "l’anno scorso": ("2025-01-01", "2025-12-31"),
    "la settimana prossima": ("2026-11-23", "2026-11-29"),
    "nel fine settimana": ("2026-11-14", "2026-11-15"),
    "lo scorso fine settimana": ("2026-11-14", "2026-11-15"),
    "in primavera": ("2026-03-01", "2026-05-31"),
    "la scorsa estate": ("2026-06-01", "2026-08-31"),
    "l'inverno scorso": ("2025-12-01", "2026-02-28"),
    "nell'estate del 2024": ("2024-06-01", "2024-08-31"),
    "a maggio": ("2026-05-01", "2026-05-31"),
    "il 3 marzo 2025": "2025-03-03",
    "lunedì 19 ottobre": "2026-10-19",
    "da ottobre 2025": ("2025-10-01", "2026-11-18"),
    "tra lunedì e venerdì": ("2026-11-09", "2026-11-13"),
    "prima di marzo": ("2025-11-30", "2026-03-31"),
    "a Natale": ("2025-12-24", "2025-12-26"),
    # Portuguese
    "o que decidimos ontem?": "2026-11-17",
    "anteontem": "2026-11-16",
    "hoje": "2026-11-18",
    "amanhã": "2026-11-19",
    "na sexta-feira": "2026-11-13",
    "na sexta": "2026-11-13",
    "segunda-feira passada": "2026-11-16",
    "terça da semana passada": "2026-11-10",
    "próxima sexta-feira": "2026-11-27",
    "há dois dias": "2026-11-16",
    "três dias atrás": "2026-11-15",
    "há três semanas": ("2026-10-25", "2026-10-31"),
    "nos últimos três dias": ("2026-11-15", "2026-11-18"),
    "nesta semana": ("2026-11-16", "2026-11-22"),
    "na semana passada": ("2026-11-09", "2026-11-15"),
    "o mês passado": ("2026-10-01", "2026-10-31"),
    "a semana que vem": ("2026-11-23", "2026-11-29"),
    "no fim de semana": ("2026-11-14", "2026-11-15"),
    "no fim de semana passado": ("2026-11-14", "2026-11-15"),
    "na primavera": ("2026-03-01", "2026-05-31"),
    "o verão passado": ("2026-06-01", "2026-08-31"),
    "em maio": ("2026-05-01", "2026-05-31"),
    "em 3 de março de 2025": "2025-03-03",
    "desde outubro de 2025": ("2025-10-01", "2026-11-18"),
    "no Natal": ("2025-12-24", "2025-12-26"),
    # Dutch
    "wat hebben we gisteren besloten?": "2026-11-17",
    "gisteravond? nee, gisterenavond": "2026-11-17",
    "eergisteren": "2026-11-16",
    "vandaag": "2026-11-18",
    "overmorgen": "2026-11-20",
    "op vrijdag": "2026-11-13",
    "vorige maandag": "2026-11-16",
    "vrijdag vorige week": "2026-11-13",
    "vorige week dinsdag": "2026-11-10",
    "deze vrijdag": "2026-11-20",
    "volgende vrijdag": "2026-11-27",
    "twee dagen geleden": "2026-11-16",
    "drie weken geleden": ("2026-10-25", "2026-10-31"),
    "de afgelopen drie dagen": ("2026-11-15", "2026-11-18"),
    "deze week": ("2026-11-16", "2026-11-22"),
    "vorige week": ("2026-11-09", "2026-11-15"),
    "vorige maand": ("2026-10-01", "2026-10-31"),
    "vorig jaar": ("2025-01-01", "2025-12-31"),
    "volgende week": ("2026-11-23", "2026-11-29"),
    "in het weekend": ("2026-11-14", "2026-11-15"),
    "afgelopen weekend": ("2026-11-14", "2026-11-15"),
    "in de lente": ("2026-03-01", "2026-05-31"),
    "afgelopen zomer": ("2026-06-01", "2026-08-31"),
    "in mei": ("2026-05-01", "2026-05-31"),
    "op 3 maart 2025": "2025-03-03",
    "sinds augustus 2025": ("2025-08-01", "2026-11-18"),
    "tussen maandag en vrijdag": ("2026-11-09", "2026-11-13"),
    "met kerst": ("2025-12-24", "2025-12-26"),
    # Russian
    "что мы решили вчера?": "2026-11-17",
    "позавчера": "2026-11-16",
    "сегодня": "2026-11-18",
    "завтра": "2026-11-19",
    "в пятницу": "2026-11-13",
    "в прошлый понедельник": "2026-11-16",
    "во вторник на прошлой неделе": "2026-11-10",
    "на прошлой неделе во вторник": "2026-11-10",
    "в эту пятницу": "2026-11-20",
    "в следующую пятницу": "2026-11-27",
    "два дня назад": "2026-11-16",
    "три недели назад": ("2026-10-25", "2026-10-31"),
    "неделю назад": ("2026-11-09", "2026-11-15"),
    "за последние три дня": ("2026-11-15", "2026-11-18"),
    "на этой неделе": ("2026-11-16", "2026-11-22"),
    "на прошлой неделе": ("2026-11-09", "2026-11-15"),
    "в прошлом месяце": ("2026-10-01", "2026-10-31"),
    "в прошлом году": ("2025-01-01", "2025-12-31"),
    "на следующей неделе": ("2026-11-23", "2026-11-29"),
    "на выходных": ("2026-11-14", "2026-11-15"),
    "весной": ("2026-03-01", "2026-05-31"),
    "прошлым летом": ("2026-06-01", "2026-08-31"),
    "летом 2024 года": ("2024-06-01", "2024-08-31"),
    "в мае": ("2026-05-01", "2026-05-31"),
    "3 марта 2025": "2025-03-03",
    "19 октября": "2026-10-19",
    "с октября 2025": ("2025-10-01", "2026-11-18"),
    # Chinese
    "上周五的会议": "2026-11-13",
    "上上周五": "2026-11-06",
    "这周一": "2026-11-16",
    "下周一": "2026-11-23",
    "周五说了什么": "2026-11-13",
    "星期二": "2026-11-17",
    "两天前": "2026-11-16",
    "最近三天": ("2026-11-15", "2026-11-18"),
    "前几天": ("2026-11-11", "2026-11-18"),
    "这个周末": ("2026-11-14", "2026-11-15"),
    "本周": ("2026-11-16", "2026-11-22"),
    "去年春天": ("2025-03-01", "2025-05-31"),
    "春天的时候": ("2026-03-01", "2026-05-31"),
    "五月之前": ("2026-01-30", "2026-05-31"),
    "十月以来": ("2026-10-01", "2026-11-18"),
    "上个月十五号": "2026-10-15",
    # Japanese
    "今月の一日にしたこと": "2026-11-01",
    "先週の金曜日": "2026-11-13",
    "先々週の月曜日": "2026-11-02",
    "今週の火曜": "2026-11-17",
    "金曜日に決めたこと": "2026-11-13",
    "二日前": "2026-11-16",
    "この三日間": ("2026-11-15", "2026-11-18"),
    "週末": ("2026-11-14", "2026-11-15"),
    "先日": ("2026-11-11", "2026-11-18"),
    "去年の夏に": ("2025-06-01", "2025-08-31"),
    "春に": ("2026-03-01", "2026-05-31"),
    "10月から": ("2026-10-01", "2026-11-18"),
    # Korean
    "지난달 3일": "2026-10-03",
    "지난주 금요일": "2026-11-13",
    "지난 금요일": "2026-11-13",
    "금요일 회의": "2026-11-13",
    "이번 주 월요일": "2026-11-16",
    "이틀 전": "2026-11-16",
    "사흘 전": "2026-11-15",
    "한 달 전": ("2026-10-01", "2026-10-31"),
    "일주일 전": ("2026-11-08", "2026-11-14"),
    "최근 3일": ("2026-11-15", "2026-11-18"),
    "며칠 전": ("2026-11-11", "2026-11-18"),
    "주말에": ("2026-11-14", "2026-11-15"),
    "지난 여름": ("2026-06-01", "2026-08-31"),
    "봄에": ("2026-03-01", "2026-05-31"),
    "10월부터": ("2026-10-01", "2026-11-18"),
}

NONE = [
    "every Friday", "on Fridays", "no deploys on any Friday", "each monday", "jeden Freitag", "freitags",
    "tous les vendredis", "los viernes", "cada lunes", "每周五", "毎週金曜日", "매주 금요일", "금요일마다", "每周末",
    "wir sind hier", "mars", "the planet Mars", "an email", "the main station", "esta bien", "hace frío", "mes amis",
    "the 31st day of this month",
    "ogni venerdì", "di lunedì", "todas as sextas-feiras", "elke vrijdag", "каждую пятницу", "в среде разработки",
    "a segunda vez", "na segunda vez", "jogging", "Mein Mai ist mein Name", "quindici persone", "sessenta", "de week",
    "la primavera", "o verão é quente", "het is een mei", "сорок лет",
    "Sommerzeit", "spring cleaning rules", "a messages tag", "im Haus",
]  # fmt: skip


def spans(query, today=TODAY):
    return [(found.first.isoformat(), found.last.isoformat()) for found in mentioned_days(query, today)]


def test_there_are_more_than_a_hundred_phrases():
    assert len(PHRASES) > 100


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_names_these_days(phrase):
    days = PHRASES[phrase]

    assert spans(phrase) == [(days, days) if isinstance(days, str) else days]


@pytest.mark.parametrize("phrase", NONE)
def test_what_is_no_day_or_every_week_names_none(phrase):
    assert spans(phrase) == []


def test_days_that_do_not_belong_together_stay_apart():
    assert spans("Monday or Tuesday") == [("2026-11-16", "2026-11-16"), ("2026-11-17", "2026-11-17")]
    assert spans("Monday and Friday") == [("2026-11-16", "2026-11-16"), ("2026-11-13", "2026-11-13")]


def test_a_weekday_is_never_today_but_the_last_one_that_has_passed():
    for days in range(1, 8):
        today = TODAY + dt.timedelta(days=days)
        ((first, _),) = spans("what was said on Wednesday", today)
        assert (today - dt.date.fromisoformat(first)).days == days


@pytest.mark.parametrize("day", ["2026-11-21", "2026-11-22"])
def test_on_a_weekend_the_weekend_is_this_one_and_the_last_one_the_one_before(day):
    today = dt.date.fromisoformat(day)

    assert spans("over the weekend", today) == [("2026-11-21", "2026-11-22")]
    assert spans("last weekend", today) == [("2026-11-14", "2026-11-15")]


@pytest.mark.parametrize(
    ("headings", "path", "day"),
    [
        (("Log", "2026-05-26"), "log.md", "2026-05-26"),
        (("2026-05-26 Tuesday", "Workshop"), "log.md", "2026-05-26"),
        (("Tagebuch 2026", "10. Januar"), "Tagebuch.md", "2026-01-10"),
        (("Diary", "Friday 23 October", "Evening 2"), "diary/2025.md", "2025-10-23"),
        (("Mayo de 2026", "4"), "Diario/mayo.md", "2026-05-04"),
        (("Mai", "4."), "2026-05.md", None),
        (("4.",), "journal/2026-05.md", "2026-05-04"),
        (("Mayo de 2026", "31 bis"), "x.md", None),
        (("Febrero de 2026", "30"), "x.md", None),
        (("日记 2026", "5月4日"), "x.md", "2026-05-04"),
        (("Diario 2026", "10 gennaio"), "Diario.md", "2026-01-10"),
        (("Diário 2026", "10 de janeiro"), "Diario.md", "2026-01-10"),
        (("Dagboek 2026", "Maandag 12 januari"), "Dagboek.md", "2026-01-12"),
        (("Дневник 2026", "12 января"), "Дневник.md", "2026-01-12"),
        (("Log", "10 January"), "log.md", None),
        (("Plan 2026", "What we want to be done with by 4 May at the very latest"), "x.md", None),
        (("Release 2.3", "Chapter 4"), "book 2026.md", None),
        (("Log 2026", "2026-02-30"), "x.md", None),
        (("Plans", "No day"), "2026.md", None),
    ],
)
def test_the_headings_of_a_diary_name_days(headings, path, day):
    assert day_of_headings(headings, path) == day


EARLY, LATE = dt.date(2026, 6, 30), dt.date(2026, 8, 20)
OF_THIS_YEAR, OF_THE_LAST = ("2026-06-01", "2026-08-31"), ("2025-06-01", "2025-08-31")


@pytest.mark.parametrize(
    "phrase",
    ["over the summer", "im Sommer", "en été", "en verano", "nell'estate", "no verão", "in de zomer", "летом", "夏に"],
)  # fmt: skip
def test_a_season_that_has_begun_lately_may_be_that_of_last_year_too(phrase):
    assert spans(phrase, EARLY) == [OF_THIS_YEAR, OF_THE_LAST]
    assert spans(phrase, LATE) == [OF_THIS_YEAR]


@pytest.mark.parametrize(
    "phrase",
    ["this summer", "diesen Sommer", "cet été", "este verano", "quest'estate", "neste verão", "deze zomer",
     "этим летом", "この夏に", "이번 여름에"],
)  # fmt: skip
def test_this_season_is_the_one_that_has_begun(phrase):
    assert spans(phrase, EARLY) == [OF_THIS_YEAR]


def test_since_a_season_is_since_the_last_that_has_begun():
    assert spans("夏天以来", EARLY) == [("2026-06-01", "2026-08-31")]
    assert spans("夏天以来", LATE.replace(month=10)) == [("2026-06-01", "2026-10-20")]


def test_from_one_season_to_another_is_all_that_lies_between_them():
    assert spans("between in the spring and in the summer", EARLY) == [("2026-03-01", "2026-08-31")]
