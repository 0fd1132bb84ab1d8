"""Words of a question that carry nothing: they are filed, for a text may be about them, but they are not looked for."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from plainmind.base.lazy import pattern


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Folded: without accents and in small letters.
_GERMAN = _words(
    """
    aber aktuell aktuelle alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim
    bin bis bist bitte da dabei dafur damit dann das dass dein deine dem den denn der derzeit des dich die dies
    diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch
    euer fur gab gegen genau gerade gewesen gibt hab habe haben hat hatte hatten hier ihm ihn ihnen ihr ihre ihrem
    ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinem keinen keiner
    konnen konnte konnten letzte machen man mein meine meinem meinen meiner meines mich mir mit muss mussen musste
    nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind so
    soll sollen sollte sonst uber um und uns unser unsere unserem unseren unserer unter viel viele vom von vor
    wann war waren warum was welche welchem welchen welcher welches wem wen wenn wer werden wessen wie wieder
    wieso wieviel will wir wird wo wofur woher wohin womit worauf wurde wurden zu zum zur zwischen
    """
)
_SPANISH = _words(
    """
    a actual actualmente ahora al algo alguien algun alguna algunas alguno algunos ante antes aquel aquella aqui
    asi aun aunque cada como con cual cuales cuando cuanta cuantas cuanto cuantos cuya cuyo de del desde donde
    durante e el ella ellas ellos en entre era eran eres es esa esas ese eso esos esta estaba estamos estan estas
    este esto estos estoy fue fueron ha hace hacer hago han has hasta hay la las le les lo los mas me mi mis mucha
    muchas mucho muchos muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otro para pero por
    porque puede puedo pues que quien quienes se sea ser si sin sobre sois solo somos son soy su sus tal tambien
    tan te tenemos tengo tiene tienen toca todas todavia todo todos tu tus u un una unas uno unos va vamos van y
    ya yo
    """
)
_FRENCH = _words(
    """
    a actuel actuelle actuellement ai as au aussi autre aux avec avez avons c ce cela ces cet cette chez ci combien
    comme comment d dans de des deux du elle elles en encore entre est et etait ete etes eu faut il ils j je l la
    laquelle le lequel les lesquels leur leurs lui m ma maintenant mais me meme mes moi mon n ne nos notre nous on
    ont ou par pas peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son
    sont sous sur t ta te tes toi ton tous tout toute toutes tu un une va vers vos votre vous y
    """
)
_ITALIAN = _words(
    """
    a abbiamo adesso agli ai al all alla alle anche attuale c che chi ci com come con cos cosa cui d da dai dal
    dall dalla dalle de degli dei del dell della delle di dov dove e ed era gli ha hai hanno ho i il in io l la le
    lei li lo loro lui ma mi mia mie miei mio ne negli nei nel nell nella nelle noi non nostra nostro o ora per
    perche piu puo qual quale quali quand quando quant quanta quante quanti quanto questa queste questi questo
    quest se si sono su sua sue sugli sui sul sull sulla sulle suo te ti tu tua tuo un una uno vi
    """
)
_PORTUGUESE = _words(
    """
    a agora ao aos as atual com como da das de dela dele do dos e ela eles em entre era essa esse esta este eu foi
    ha isso ja la lhe mais mas me meu minha na nao nas nem no nos nossa nosso o onde os ou para pela pelo por
    porque quais qual quando quanta quanto quantos que quem sao se sem seu sua tem tenho um uma voce
    """
)
_DUTCH = _words(
    """
    aan al als bij dan dat de deze die dit door een en er had heb hebben heeft het hier hij hoe hoeveel ik in is
    je jij kan kunnen maar me met mij mijn moet moeten na naar niet nog nu of om onder ons onze ook op over te tot
    u uit van veel voor waar waarom wanneer waren was wat we welk welke wie wij word worden zich zij zijn zo
    """
)
_BY_LANGUAGE = (_GERMAN, _SPANISH, _FRENCH, _ITALIAN, _PORTUGUESE, _DUTCH)
# Words of a language that mean something in English: alone they do not tell which language it is.
_ALSO_ENGLISH = _words(
    """
    all alle also am an as at chi come den die dies do dove even fur had hat he here hier if in is it la ma man me
    mi mine no nun of on or over pas per plus si sin so sole son sue sur to toe ton tout tu under us van war was
    will
    """
)


# A word that has lost its last letter to the next one: "l'algoritmo", "qu’est-ce".
ELIDED = pattern(r"[^\w\s]*([^\W\d_]+)['’](?=[^\W\d_]{2})")
_JOINT = pattern(r"['’-]")


def parted(word: str) -> list[str]:
    """The words that are written as one."""
    return _JOINT.split(word)


def of_another_language(words: AbstractSet[str], *, than: int) -> frozenset[str]:
    """The words that tell nothing in the language of a question, by its folded words; empty when it may be English.

    It has to have more of them than `than`, which is how many English has.
    """
    empty: frozenset[str] = frozenset()
    for of_language in _BY_LANGUAGE:
        found = words & of_language
        if len(found) > than and found - _ALSO_ENGLISH:
            empty, than = of_language, len(found)
    return empty


# --- scripts without spaces: which pairs of letters are looked for ---

# Each stands between words that tell something; longer ones first.
_CHINESE = tuple(
    """
    什么时候 多长时间 为什么 多少錢 怎么样 是不是 有没有 能不能 一下 一个 为何 什么 什麼 他们 你们 几个 几号 几点
    可以 咱们 哪个 哪些 哪位 哪儿 哪天 哪家 哪年 哪条 哪种 哪部 哪里 多久 多少 她们 如何 应该 当前 怎么 怎样 怎麼
    我们 时候 最新 最近 现在 甚麼 當前 目前 这个 这些 那个 那些 需要 么 了 他 们 你 吗 吧 呢 咱 哪 啥 嗎 在 她 它
    您 我 把 是 的 被 誰 谁 这 這 那 麼
    """.split()  # noqa: SIM905
)
_PARTICLES = frozenset("はがをにへとでのもかやよね")
_HONORIFICS = "おご"
_JAPANESE_PAIRS = _words(
    """
    ある いく いけ いつ いて いま いる うな かな から くだ くつ くら くれ けど けな こが こで こと こに こは ころ
    ごろ さい しか した して しょ すか する せん たい たこ たの ため たら たり だけ ださ だっ だれ ちゃ ちら った
    って てい ても てる です では でも とか とき とは どう どこ どち どな どの どれ どん ない なく なぜ なた など
    なに なの なら なん にし には にも ねん のか のが のこ ので のに のは のを ばい ほど まし ます ませ まだ まで
    もう もの もら ょう よう より られ れた れる んな
    """
)
_KOREAN = _words(
    """
    거 건 건가 건지 것 게 그 그리고 나 나는 나의 내 내가 너 누가 누구 누구야 누구에요 누구예요 누구지 다 더 돼
    되나 되는 때 또 맞아 몇 못 무슨 무엇 뭐 뭐더라 뭐야 뭐였지 뭐지 뭔가 뭔지 뭘 및 봐 수 아직 안 알려 알려줘 야
    어느 어디 어디서 어디야 어디에 어디지 어떤 어떻게 언제 언제까지 언제부터 언제야 언제지 얼마 얼마나 얼마야
    얼마예요 얼마지 없는 없어 였지 왜 요 요즘 우리 우리가 우리는 이 이야 인가 인가요 인지 일 일은 일이 있나 있나요
    있는 있는지 있어 있었나요 있었어 있었지 있지 저 제 제가 좀 주나 주나요 주는 줄 줘 지금 최근 하나 하나요 하는
    하지 해 해요 했나 했나요 했더라 했어 했지 현재
    """
)
# Longer ones first.
_KOREAN_ENDINGS = tuple(
    """
    에서는 이에요 인가요 까지 부터 에게 에서 예요 으로 이랑 이야 이지 인가 인지 한테 가 과 는 도 랑 로 를 만 에 와
    은 을 의 이
    """.split()  # noqa: SIM905
)


def pairs_of_question(run: str, *, of: str) -> list[str]:
    """The pairs of letters of a run that tell something; `of` is all of the question, which shows its language."""
    if len(run) == 1:
        return [] if run in _KOREAN or run in _CHINESE else [run]
    if any("\uac00" <= letter <= "\ud7a3" for letter in run):
        return _korean_pairs(run)
    if any("\u3041" <= letter <= "\u30ff" for letter in of):
        return [pair for at, pair in enumerate(_pairs(run)) if _tells_in_japanese(pair, inside=at > 0)]
    parts = [run]
    for word in _CHINESE:
        if word in run:
            parts = [piece for part in parts for piece in part.split(word)]
    return [pair for part in parts for pair in _pairs(part)]


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _tells_in_japanese(pair: str, *, inside: bool) -> bool:
    """Whether a pair is part of a word: not of particles and endings, and not across the end of a word."""
    first, second = pair[0], pair[1]
    if not _is_hiragana(first):
        return second not in _PARTICLES
    if _is_hiragana(second):
        return pair not in _JAPANESE_PAIRS and not (inside and first in _PARTICLES)
    return first in _HONORIFICS


def _is_hiragana(letter: str) -> bool:
    return "\u3041" <= letter <= "\u309f"


def _korean_pairs(word: str) -> list[str]:
    """The pairs of a word without its particle."""
    if word in _KOREAN:
        return []
    for ending in _KOREAN_ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return _pairs(word[: -len(ending)])
    return _pairs(word)
