"""Questions without a subject, which a list answers: what was on a day, who is asking, and what is new."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.model import Restriction, date, timedelta
from plainmind.search.pages import ParsedQuery
from plainmind.text.terms import fold, letters_without_spaces, may_be_spaceless, query_terms

_LETTERS = pattern(r"[^\W\d_]+")

# --- questions about a day and nothing else ---

# A longer time has too many notes to list them.
MOST_DAYS = 31
# What people say of a day as a whole, besides words that tell nothing anyway: they spoke, did, decided, and asked.
_OF_ANY_DAY_ENGLISH = frozenset(
    """
    accomplish accomplished achieve achieved added agree agreed anything asked been catch caught changed chat chats
    chatted chatting completed concluded conversation conversations day days decide decided diary did discuss
    discussed discussing discussion discussions do doing done each else entries entry event events everything finished
    gave give go goes going gone happen happened happening highlights important interesting journal last learned
    learnt list log logged logs made make me mention mentioned messages new news note noted notes notable overview
    planned please quick quickly recall recap recapped record recorded remember remembered remind said say saying
    session sessions settled show since something speak speaking spend spent spoke spoken stuff suggested summarise
    summarised summarize summarized summary take taken talk talked talking talks tell thing things today together told
    topics took up went what worked working write written wrote dagboek diario notas notiz notizen passiert tagebuch
    """.split()  # noqa: SIM905
)
# These are things too: "what did we work on", but "what happened at work".
_DOES = pattern(
    r"\b(?:i|we|you|they)(?: \w+ly| all| just| ever)? (?:ask|change|get|go|learn|plan|work)\b"
    r"|\b(?:been|was|were) (?:asking|changing|planning|learning)\b",
    IGNORECASE,
)
_ABOUT = pattern(
    r"\b(?:about|regarding|concerning|on|at|in|from|for|of|with)"
    r"((?: (?!(?:what|which|who|that|i|we|you|they)\b)\w+){1,3})",
    IGNORECASE,
)
# What may stand behind "about", "on" or "in" and is no subject either.
_NO_SUBJECT = frozenset(
    """
    anything chat chats conversation conversations day days diary discussion discussions else entries everything journal
    last list log logs notes session sessions something stuff talk talks things today together topics
    """.split()  # noqa: SIM905
)
# All that such a question is made of, by language: German, French, Spanish, Italian, Portuguese, Dutch. Folded.
_OF_ANY_DAY = (
    """
    abgemacht alles am an anderes auf aufgeschrieben ausgemacht bei beschlossen besonderes besprochen bitte da daran
    das dazu dem den denn der des dich die dir diskutiert doch du eigentlich eingetragen eintrag eintrage entschieden
    ereignet ereignisse erinner erinnere erledigt erwahnt erzahl erzahle erzahlt es etwas euch festgehalten festgelegt
    ganze ganzen gab gearbeitet gefragt gegangen gelernt gemacht gemeinsam gemerkt geplant geplaudert geredet gesagt
    geschafft geschah geschehen geschrieben gesprach gesprache gesprochen getan gewesen gibt ging gingen hab habe
    haben hast hat hatte hatten ich ihr im in irgendwas ist lief liste los mal man mich mir mit nenne neu neues
    neuigkeiten noch nochmal notiert notiz notizen ob oder passiert protokoll s sag sage sei seit seitdem sich sie so
    sonst tag tage tagebuch thema themen uber um und uns unterhalten unterhaltung unterhaltungen verabredet vereinbart
    vom von vorgefallen waren war was weisst welche welches wer wichtiges wie wir wo wobei wofur womit woran woruber
    wovon wozu wurde wurden zeig zeige zu zusammen zusammenfassung fass fasse
    """,
    """
    a ai ait arrive arrives as au autre autres aux avait avec avez avons bavarde bien c ce chose choses choisi comment
    conversation conversations convenu convenus d dans de deja demande depuis des discussion discussions discute dit
    dites dont du echange echanges ecrit en encore ensemble entree entrees est et ete etait etaient etions eu
    evenement evenements fait faites faits important j je jour journal journee l la le les liste m me moi montre n
    neuf notes nous nouveau nouveautes nouvelles on ont ou parle parles passe passee passees peux planifie pouvez
    prevu produit qu quel quelle quelles quels que qui quoi rappelle rappeler resume resumer rien s se souviens sujet
    sujets sur t te tous tout toute travaille tu un une vous y decide decides appris
    """,
    """
    a acordado acordamos al algo anotado anotamos anote aprendi aprendido aprendimos apuntado apuntamos charla
    charlado charlamos charlas comentado comentamos como con contado contamos conte conversacion conversaciones
    conversado conversamos cosa cosas cual cuales cuando cuentame de decidi decidido decidimos del desde dia diario
    dias dice dicho dije dijimos dijiste dijo dime dinos discutido discutimos donde el en entrada entradas era escribi
    escribimos escrito es esta estuve estuvimos estuvo fue fueron ha habia hable hablado hablamos hablando hablo hace
    hacer haciendo han has hay he hecho hemos hice hicieron hiciste hicimos hizo hubo importante la las le les lista
    lo los mas me mencionado mencionamos mi mis muestra muestrame nos nosotros nota notas novedades nuestra nuestras
    nuestro nuestros nuevo nuevas o ocurrido ocurrio otra otras otro otros para pasado paso planeado planeamos por
    pregunte preguntado preguntamos preguntaste pregunto que quedamos quien recuerda recuerdame recuerdas resume
    resumen se sido sobre sucedido sucedio son te tema temas toda todas todo todos trabajado trabajamos trabaje tu tus
    un una unas uno unos y yo
    """,
    """
    a abbiamo accaduto al altra altre altri altro annotato appunti avete avvenuto c che chi chiacchierato chiesto come
    con concordato conversazione conversazioni cos cosa cose da dal de deciso del della detto di diario dimmi discusso
    dove e elenca era fatto giornata giorno gli ha hai hanno ho i il imparato importante in io l la lavorato le lo mi
    mostrami ne nel noi nota notizie novita nuove nuovo parlato per quale quali quando riassumi riassunto ricordami
    ricordi s scelto scritto si sono stata stati stato su successo sul tu tutto un una vi
    """,
    """
    a aconteceu acontecido anotado anotamos anotei ao aprendemos aprendi aprendido as coisa coisas com combinado
    combinamos como conte conversa conversado conversamos conversas da das de decidi decidido decidimos decidiu desde
    dia diario diga discutido discutimos disse dissemos dito do dos e em era escrevemos escrevi escrito eu falado
    falamos falei falou fazer feito fez fiz fizemos foi foram gente ha houve importante lembra lembre lhe liste mais
    me mim mostre na nas no nos nota notas novas novidades novo o ocorreu onde os ou outra outras outro outros para
    passou perguntado perguntamos perguntei perguntou por quais qual quando que quem resuma resumo se sobre tem temos
    trabalhado trabalhamos trabalhei tudo um uma voce
    """,
    """
    aan afgesproken alles anders beslist besloten besproken dag dagboek dan de die ding dingen een en er gaande
    gebeurd gebeurde gedaan gehad gekletst geleerd genoteerd gepland gepraat geschreven gesprek gesprekken gesproken
    gevraagd gewerkt geweest gezegd had hadden hand heb hebben hebt heeft herinner het hoe iets ik in is je jij jullie
    laat laatste me met mij nieuw nieuwe nieuws nog notitie notities of om ons ook op opgeschreven over samen
    samenvatting sinds toon u vat van vertel verteld waar waaraan waarover wanneer waren was wat we welke werd wie wij
    zien zijn
    """,
)
_OF_ANY_DAY_EAST_ASIAN = """
    发生 發生 什么 什麼 甚麼 事情 事儿 事 做 干 記 记 錄 录 笔记 筆記 日记 日記 有 了 的 吗 嗎 呢 过 過 我 们 們 咱 你
    您 都 啥 写 寫 情况 情況 聊天 聊 谈 談 讨论 討論 说 說 讲 講 问 問 提到 提 决定 決定 商量 答应 約定 约定 学到 學到
    学 學 完成 计划 計劃 还 還 又 哪些 哪里 哪裡 哪儿 怎么样 怎麼樣 怎么 怎麼 如何 过得 一下 一起 另外 其他 告诉 告訴
    提醒 回顾 回顧 总结 總結 内容 內容 话题 話題 对话 對話 会话 新的 新 变化 變化 是 跟 和 给 給 請 请 吧 啊 呀 些
    話した 話しました 話してた 話していた 話し合った 話し合いました 話 言った 言いました 言って 聞いた 聞きました
    尋ねた 質問した 質問しました 相談した 相談しました 決めた 決めました 決まった 決まりました 会話 チャット 私たち
    私達 僕たち 私 僕 俺 一緒に 他に ほかに 新しい 何か 思い出して 思い出させて 起きた 起きました 起こった
    起こりました やった やりました 学んだ 学びました まとめて まとめ どんな どうでした どうだった ください でしたっけ
    でした ですか です っけ たっけ しましたか について こと もの 何 なに なん が を は に の か も と て で ね よ
    あった ありました した しました していた してた だった どう 出来事 メモ 教えて 書いた 書きました 무슨 일이 일
    있었지 있었어 있었나 있었나요 있었니 했지 했어 했나 했나요 했니 했더라 했었지 했는지 뭐라고 뭐 뭘 무엇을 무엇 어떤
    어떻게 알려줘 알려 줘 에 은 는 이 가 의 을 를 와 과 메모 일기 기록 이야기 얘기 대화 말한 말했지 말했어 말했나 말
    물어봤지 물어봤어 물었지 물었어 물어본 나눴지 나눴어 나눈 결정한 결정했지 결정했어 결정했나 결정 정했지 정했어
    배웠지 배웠어 우리가 우리 내가 나는 제가 너한테 너에게 새로운 새로 다른 또 기억나 상기시켜 일어났지 일어났어
    일어난 지냈지 지냈어 요약해 요약 한 것 거 지 어
    """


def days_alone(query: ParsedQuery) -> Restriction | None:
    """The days of a question that asks for nothing but what was on them; None for any other."""
    first, last = min(span.first for span in query.days), max(span.last for span in query.days)
    rest = query.text
    for span in query.days:
        rest = rest.replace(span.text, " ")
    if (last - first).days >= MOST_DAYS or not _says_nothing(rest):
        return None
    return Restriction(since=first.isoformat(), until=last.isoformat())


def _without_words(text: str, words: str) -> str:
    """A text of a script without spaces, without these words; longer ones are taken out first."""
    for word in sorted(words.split(), key=len, reverse=True):
        text = text.replace(word, " ")
    return text


def _says_nothing(rest: str) -> bool:
    if may_be_spaceless(rest):
        rest = _without_words(rest, _OF_ANY_DAY_EAST_ASIAN)
        if may_be_spaceless(rest) and letters_without_spaces(rest):
            return False
    words = _LETTERS.findall(rest)
    folded = [*map(fold, words)]
    if len(words) > 1 and any(set(told.split()).issuperset(folded) for told in _OF_ANY_DAY):
        return True
    said = " ".join(words)
    if any(_tells(follows.split(), _NO_SUBJECT) for follows in _ABOUT.findall(said)):
        return False
    return not _tells(_DOES.sub(" ", said).split(), _OF_ANY_DAY_ENGLISH)


def _tells(words: Iterable[str], but_for: AbstractSet[str]) -> bool:
    """Whether some words of English name anything besides these."""
    found = query_terms(" ".join(word for word in words if fold(word) not in but_for))
    return bool(found.terms) and not found.only_stop_words


# --- questions without a subject: who is asking, and what is new ---

# What a memory knows of its person stands there; the last are what people call such a note.
OF_ASKER = ("USER.md", "MEMORY.md", "about me.md", "about-me.md", "about_me.md", "me.md")
_ASKER = pattern(
    r"\b(?:about (?:me|myself|my life|the user)|am i|(?:know|remember|describe) me|my profile"
    r"|(?:uber|kennst du|an) mich|von mir|bin ich|(?:de|sobre) mi|quien soy|(?:de|sur) moi|suis je|di me|chi sono"
    r"|(?:de|sobre) mim|sou eu|over mij|ben ik)\b"
)
_ASKER_EAST_ASIAN = pattern(
    r"(?:关于|關於|了解|瞭解|认识|認識|记得|記得|知道)我|我是[谁誰]|(?:私|僕|俺|自分)(?:について|のこと|は誰)"
    r"|(?:나|저|내)에 ?대해서?|(?:나|내|저)(?:는|가) ?누구|나를|저를"
)
_OF_KNOWING = """
    a actually all anything are can could did do does everything far give has have is it know known learn learned me
    memory of on overview please remember remembered s so stored summarise summarize summary tell that the things us
    what whats who you your
    alles bitte denn dich du eigentlich erzahl hast ich ist mir sag uber von was weiss weisst wer wir zusammenfassung
    cosas cuentame dime eso lo que recuerdas sabe sabes todo tu usted yo
    ce dis est moi peux qu que qui quoi raconte rappelles sais savez tout tu vous
    che chi cosa dimmi ricordi sai tutto
    diga lembra o quem tudo voce
    herinner je over vertel wat weet wie
    """
_OF_KNOWING_EAST_ASIAN = """
    告诉我 告訴我 知道 记得 記得 了解 什么 什麼 多少 哪些 一切 所有 事情 关于 關於 你 您 都 些 的 吗 嗎 呢 有
    事 谁 誰 是
    知っている 知ってる 知っています 覚えている 覚えています 教えてください 教えて ください 全部 すべて ますか ます こと
    何 なに か を は が で です の 誰
    알고 있는 있어 있니 있나요 알아요 알아 아는 기억하는 기억해 기억 말해줘 알려줘 전부 모든 것을 것 무엇을 무엇 뭘 뭐
    뭐야 다 좀 누구야 누구지 요 해 야 지
    """
_NEW = pattern(
    r"\b(?:new|news|newest|latest|lately|recent(?:ly)?|neues|neuigkeiten|neulich|kurzlich|zuletzt|neuest\w*"
    r"|nuevo|novedades|ultimamente|recientemente|neuf|nouveau|nouvelles|recemment|dernierement"
    r"|nuovo|novita|recentemente|novidades|novo|nieuws|onlangs)\b"
    r"|最近|最新|新消息|新鲜事|新しい|ニュース|새로운|새 소식|소식|최근|요즘"
)
# What is new: of these last days, or if nothing is, of these.
_NEW_DAYS = (14, 92, 366)


def without_subject(text: str, today: date) -> list[tuple[Restriction, tuple[str, ...]]]:
    """The lists that answer a question about nothing but who asks, or what is new: the first that has anything."""
    if is_about_asker(text):
        return [(Restriction(paths=OF_ASKER), (f"“{text}” as what the notes about you say",))]
    if not is_about_news(text):
        return []
    firsts = [(today - timedelta(days=days - 1)).isoformat() for days in _NEW_DAYS]
    until = today.isoformat()
    return [
        (Restriction(since=since, until=until), (f"“{text}” as the newest, since {since}",))
        for since in firsts
    ]


def is_about_asker(text: str) -> bool:
    """Whether a question asks for all that is known of who asks, and for nothing else."""
    if may_be_spaceless(text):
        rest, found = _ASKER_EAST_ASIAN.subn(" ", text)
        return bool(found) and not letters_without_spaces(_without_words(rest, _OF_KNOWING_EAST_ASIAN))
    words = _LETTERS.findall(fold(text))
    rest, found = _ASKER.subn(" ", " ".join(words))
    return bool(found) and set(_OF_KNOWING.split()).issuperset(rest.split())


def is_about_news(text: str) -> bool:
    """Whether a question asks for what is new, and for nothing else."""
    folded = fold(text)
    if not may_be_spaceless(text) and " " not in folded:  # a word alone is looked for: it may be a name
        return False
    rest, found = _NEW.subn(" ", folded)
    return bool(found) and _says_nothing(rest)
