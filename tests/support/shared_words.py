"""Words that a question and its evidence have in common: what a paraphrase must not have."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

PREFIX = 4  # letters of a Latin word that stand for the rest: "allergic" and "allergies" are one

# Words that carry nothing. Names and subjects are never here.
_LATIN = """
a about after again all also am an and any anyone anything are as at away be been before being both but by can
cannot come comes could did do does doing done down each else ever every everything few for from get gets getting
give gives go goes going got had has have having he her here him his how i if in instead into is it its just kind
let like ll long make makes many may me mean might mine more most much must my need needs never new no not nothing
now of off often old on once one only or other our ours out over own please quite re really same say says she
should since so some someone something sort still such than that the their them then there these they thing things
this those time to too two up upon us use used uses using very was way we well went were what when where which
while who whom whose why will with within without would yet you your three first last

aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis da damit dann
darf das dass dein dem den denn der des dich die dies diese diesem diesen dieser dieses doch dort du durch ein eine
einem einen einer eines er es etwas euch fur gab gar geht genau gern gibt hab habe haben hat hatte hatten ich ihm
ihn ihnen ihr ihre ihrem ihren im immer ins ist ja jede jedem jeden jeder jedes jetzt kam kann kein keine
keinen keiner konnte kommt lange lass lassen machen macht man mal mehr mein meine meinem meinen meiner mich mir mit
muss mussen nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich sie
sind so soll sollte sonst um und uns unser unsere unserem unseren unserer unter viel viele vom von vor wann war
waren warum was weil welche welchem welchen welcher welches wem wen wenig wenn wer werden wie wieder will wir wird
wo wofur wohin womit woran worauf wovon wurde wurden zu zum zur zwei drei uber wieviel tun steht

al algo alguien alguna alguno ante antes aqui asi aun bajo bien cada como con cosa cosas cual cuales cuando
cuanta cuantas cuanto cuantos de del desde donde dos e el ella ellas ellos en entre era eran es esa ese eso esta
estaba estamos estan estar este esto estos fue fueron ha habia hace hacen hacer han hasta hay he hecho la las le
les lo los mas me mi mis mucho muy nada ni ninguno no nos nosotros nuestra nuestras nuestro nuestros nunca o os
otra otras otro para pero poco por porque pues que quien quienes se sea segun ser si siempre sin sobre solo son su
sus tan tanto te tenemos tener tengo ti tiene tienen todo todos tres tu un una uno unos va vamos van ya y yo sirve
debe hacia tras puede pueden
"""
_CJK = """
什么 怎么 为什么 哪里 哪儿 哪个 哪天 哪家 哪种 哪位 哪些 多少 几点 几号 几天 几年 几个 多久 多大 多长 是谁
谁的 我们 你们 他们 她们 我家 咱们 咱家 自己 这个 那个 这些 那些 时候 现在 已经 还是 还有 有没有 没有 不是
是不是 可以 能不能 不能 不要 要不要 需要 应该 因为 所以 如果 但是 然后 之后 以后 之前 以前 以及 或者 一个
一下 一次 一直 一样 这样 那样 的话 东西 不会 会不会 最后 后来 当时 今年 去年 的时 出来 起来 下来 的人 里的
了吗 的是 我的 她的 他的 家里 何時 何日 何年 何曜 何番 自分 場合 必要 最近 一番 以外 以上 以下
"""
_HANGUL = """
무엇 무슨 뭐 뭐야 뭐지 뭘 누구 누가 누구야 어디 어디에 어디서 언제 언제야 언제까지 왜 어떻게 어떤 어느 얼마
얼마나 얼마야 몇 몇시 우리 우리집 우린 내가 나는 나 내 제 저 저는 제가 그 그때 이 것 게 거 건 수 때 더 안
못 꼭 좀 잘 다 또 지금 이제 아직 하는 하지 해 해야 했지 했어 했나 한 할 하고 하면 하나 있는 있어 있지 있나
있었지 있고 없는 없이 되는 된 됐지 이번 그건 어느쪽 같은 위해 대신 먼저 함께 다시 너무 제일 가장 어떡해
그리고 그래서 에서 까지 부터 그만
"""
_STOP_LATIN = frozenset(_LATIN.split())
_STOP_CJK = sorted(_CJK.split(), key=len, reverse=True)
_STOP_HANGUL = frozenset(_HANGUL.split())

_WORD = re.compile(r"[a-z0-9]+")
_HAN_OR_KATAKANA = re.compile(r"[\u4e00-\u9fff\u30a0-\u30ff々]+")
_HANGUL_WORD = re.compile(r"[\uac00-\ud7a3]+")


def content_keys(text: str) -> frozenset[str]:
    """Stand-ins for the words that carry meaning: Latin prefixes, pairs of Han or katakana, starts of Korean words."""
    return frozenset(_latin_keys(text) | _cjk_keys(text) | _hangul_keys(text))


def _latin_keys(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", text.casefold().replace("ß", "ss").replace("ø", "o"))
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    words = [word for word in _WORD.findall(plain) if word not in _STOP_LATIN and len(word) > 1]
    return {(word.removesuffix("s") if len(word) == PREFIX else word)[:PREFIX] for word in words}


def _cjk_keys(text: str) -> set[str]:
    for stop in _STOP_CJK:
        text = text.replace(stop, " ")
    runs = _HAN_OR_KATAKANA.findall(text)
    return {run[at : at + 2] for run in runs for at in range(len(run) - 1)}


def _hangul_keys(text: str) -> set[str]:
    words = _HANGUL_WORD.findall(unicodedata.normalize("NFC", text))
    return {word[:2] for word in words if word not in _STOP_HANGUL and len(word) > 1}


def with_headings(path: str, lines: list[str], number: int) -> str:
    """A line, the path of headings above it, and the names of its file: its own, those in the front matter."""
    names = [
        line.partition(":")[2] for line in lines[: number - 1] if line.startswith(("title:", "aliases:"))
    ]
    above: list[tuple[int, str]] = []
    for line in lines[: number - 1]:
        heading = re.match(r"(#{1,6}) +(.*)", line)
        if heading:
            level = len(heading[1])
            above = [*((depth, text) for depth, text in above if depth < level), (level, heading[2])]
    return "\n".join([Path(path).stem, *names, *(text for _, text in above), lines[number - 1]])
