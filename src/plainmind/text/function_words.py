"""Little words: those of a question that carry nothing and are not looked for, and those that say what holds now."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from itertools import pairwise, takewhile

from plainmind.base.lazy import IGNORECASE, pattern


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


# --- questions without a subject: all that they may be made of ---

# What people say of a day as a whole, besides words that tell nothing anyway: they spoke, did, decided, and asked.
OF_ANY_DAY_ENGLISH = frozenset(
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

# What may stand behind "about", "on" or "in" and is no subject either.
NO_SUBJECT = frozenset(
    """
    anything chat chats conversation conversations day days diary discussion discussions else entries everything journal
    last list log logs notes session sessions something stuff talk talks things today together topics
    """.split()  # noqa: SIM905
)

# All that such a question is made of: German, French, Spanish, Italian, Portuguese, Dutch, Russian. Folded.
OF_ANY_DAY = (
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
    """
    а был была были было в вам вас все всё вы где говорил говорила говорили говорилось дела делал делала делали день
    дневник договорились еще за заметка заметки записал записала записали записи запись и из интересного как какие
    какои когда кто мне меня мы на нам напомни нас нового новое новости о об обсудили обсуждали перескажи писал писали
    планировали по поговорили покажи про произошло происходило работал работала работали разговаривали разговор
    разговоры решил решила решили с сделал сделала сделали сегодня скажи сказал сказала сказали случилось со собои
    спросил спросила спросили список там тебе ты у узнал узнали чем что чего чему это этот я
    """,
)

OF_ANY_DAY_EAST_ASIAN = """
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

OF_KNOWING = """
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

OF_KNOWING_EAST_ASIAN = """
    告诉我 告訴我 知道 记得 記得 了解 什么 什麼 多少 哪些 一切 所有 事情 关于 關於 你 您 都 些 的 吗 嗎 呢 有
    事 谁 誰 是
    知っている 知ってる 知っています 覚えている 覚えています 教えてください 教えて ください 全部 すべて ますか ます こと
    何 なに か を は が で です の 誰
    알고 있는 있어 있니 있나요 알아요 알아 아는 기억하는 기억해 기억 말해줘 알려줘 전부 모든 것을 것 무엇을 무엇 뭘 뭐
    뭐야 다 좀 누구야 누구지 요 해 야 지
    """

# --- what a line says of now ---

CHANGE = pattern(
    r"\b(?:now|instead|no longer|any ?more|from now on|since|as of|chang\w+|moved|switch\w*|raised|lowered|cuts? back"
    r"|new|replac\w+|jetzt|statt|nicht mehr|ab sofort|seit|geändert|neu\w*|nun|ahora|ya no|en vez|desde|cambi\w+"
    r"|nuev\w+|maintenant|désormais|ne \w+ plus|depuis|nouve\w+|renam\w+|umbenannt|umgezogen|gewechselt|renommée?s?"
    r"|déménag\w+)\b"
    r"|改|不再|现在|現在|变|變|涨|漲|换|換|新|もう|今後|変|から|이제|부터|바뀌|바꿨|새로",
    IGNORECASE,
)

# Such a line says itself that it holds from its day on.
_NOW = "now|jetzt|nun|ahora|agora|maintenant|désormais"
FROM_NOW = pattern(
    rf"\b(?:{_NOW}|no longer|any ?more|from now on|as of|moved|switched|replaced|renamed|changed|raised|lowered"
    r"|increased|reduced|nicht mehr|ab sofort|umbenannt|erhöht|gesenkt"
    r"|umgezogen|gewechselt|ya no|ne \w+ plus|renommée?s?)\b|现在|現在|もう|今は|改名|改称|引っ越|이제",
    IGNORECASE,
)
# What a thing is called, where it is, and who or what does something are told anew in words of their own. Then a line
# need not have the word that asks for it: a new name stands in none with "called". A line may be very long, and is gone
# through once.
_IS_NOW = "(?:is|are|ist|sind|est|es|é|è) (?:now|jetzt|nun|ahora|agora|maintenant|désormais|adesso|ora)"
_PLACE = "in|at|on|near|behind|under|with|by|im|am|auf|bei|beim|hinter|unter|en|con|à|chez|dans|sous"
_SINCE = "since|seit|desde|depuis"
_CALLED = "call name title heißen heißt nennen nennt llama llamar nombre appelle nom 叫 名字 名前 이름"
_RENAMED = (
    r"\b(?:renam\w+|new name|changed\b.{0,200} to|umbenannt|neue[nr]? namen?|el nombre|nuevo nombre|renomm\w+"
    rf"|nouveau nom|{_IS_NOW} (?!(?:{_PLACE})\b)\w|jetzt den namen)|改名|改称|更名|이름을"
)
_PLACED = (
    "live stay keep store stand hang sit wohnen wohnt leben lebt liegen liegt stehen steht hängt vive guarda habite vit"
    " 住 放 住所"
)
_MOVED = (
    r"\b(?:moved|relocated|umgezogen|zog|verlegt|mudó|mudado|déménag\w+)\b|搬|移|引っ越|이사"
    rf"|\b(?:{_IS_NOW}|{_NOW}) (?:{_PLACE})\b|^(?=.*\b(?:{_PLACE})\b)(?=.*\b(?:{_SINCE})\b)"
)
_DONE = "use used run lead host own nutzen benutzen verwenden leitet usa usamos utilise 使用 使う 用"
_TAKEN_OVER = (
    r"\b(?:switched|replaced|took over|umgestiegen|ersetzt|gewechselt|cambiamos|cambiado|remplacée?)\b"
    r"|[换換]|変更|바[꿨꾸]"
    rf"|\b{_IS_NOW}\b|^(?=.*\b(?:with|by|bei|con|chez)\b)(?=.*\b(?:{_SINCE})\b)"
)
_TIMED = (
    "next upcoming date time appointment scheduled nächst nächste termin próxima cita prochain rendez-vous"
)
_PUT_OFF = (
    r"\b(?:moved|(?:re)?scheduled|postponed|delayed|brought forward|put (?:off|back)|pushed|changed|cancell?ed"
    r"|verschoben|verlegt|vorgezogen|abgesagt|geändert|umgelegt|aplazad\w+|pospuest\w+|adelantad\w+|cambiad\w+|cancelad\w+"
    rf"|reportée?s?|déplacée?s?|avancée?s?|décalée?s?|annulée?s?|spostat\w+|rinviat\w+)\b|\b{_IS_NOW}\b"
    rf"|\b(?:{_NOW}) (?:{_PLACE}|um|a las|from|ab)\b|改|延期|变更|変更|推迟|提前|移|연기|변경|옮"
)
# By the words that ask for something: what tells it anew.
TOLD_ANEW = ((_CALLED, _RENAMED), (_PLACED, _MOVED), (_DONE, _TAKEN_OVER), (_TIMED, _PUT_OFF))
# By how a question begins: what tells it anew. Any other one may be answered by whatever holds from its day on.
_ENDED = "no longer|any ?more|nicht mehr|ya no"
_IS_NOW_AT = rf"\b{_IS_NOW} (?:(?-i:[A-Z\d])|number|nr|here|there|next to|opposite|hier|dort|neben)"
ASKS_WHEN = pattern(r"\W*(?:when|wann|cu[aá]ndo|quand)\b", IGNORECASE)
TOLD_BY = (
    (pattern(r"\W*(?:where|wo|d[oó]nde|où)\b", IGNORECASE), pattern(rf"{_MOVED}|{_IS_NOW_AT}", IGNORECASE)),
    (ASKS_WHEN, pattern(_PUT_OFF, IGNORECASE)),
    (
        pattern(r"\W*(?:who|wer|qui[eé]n|qui)\b", IGNORECASE),
        pattern(rf"{_TAKEN_OVER}|\b(?:{_ENDED}|from now on|as of|ab sofort)\b", IGNORECASE),
    ),
)
# Who or what is new in the place of another one; the word is what it is.
A_NEW = pattern(r"\b(?:new|neue[nrms]?|nuev[oa]|nouve(?:au|l|lle)|nuov[oa]|nov[oa]) (\w+)", IGNORECASE)
# --- what an English line speaks of ---

IN_ENGLISH = pattern(r"(?:where|when|who|what|which|whose|how)\b", IGNORECASE)
# What may stand behind the name of a thing: any other word makes a name of two, "the office printer".
_NO_PART_OF_A_NAME = _words(
    """
    again also called closed finally gets got just later never officially only recently soon still temporarily then
    today tomorrow yesterday
    """
)
_DETERMINERS = _words("a an the her his their our my its your all both some this that")
_PREPOSITIONS = _words("of in at on for from to with near by behind under into about")
_MOVED_WHAT = pattern(
    r"\b(?:moved|changed|switched|pushed|postponed|replaced|renamed|cancell?ed|raised|lowered|increased|reduced) "
    r"(?:all |both )?(?:the|an?|her|his|their|our|my|its|your|some) (\w+(?: \w+){0,2})",
    IGNORECASE,
)
_WORD_OR_MARK = pattern(r"\w+|[^\w\s]")
_TOLD_EARLY = 2_000  # what a line speaks of stands there


def is_of_something_else(line: str, is_meant: Callable[[str], bool], *, or_by_the_way: bool = False) -> bool:
    """Whether the meant words belong to another thing in a line: of the office the office printer, of Mia her desk.

    With `or_by_the_way` also where they only say of what, or where, that is: the printer of the office.
    """
    line = line[:_TOLD_EARLY]
    moved = _MOVED_WHAT.search(line)
    if moved and not any(map(is_meant, takewhile(lambda word: word not in _PREPOSITIONS, moved[1].split()))):
        return True
    is_else, before = False, ""
    for word, after in pairwise([*_WORD_OR_MARK.findall(line), ""]):
        if is_meant(word):
            is_else = _goes_on(after, is_meant) or (or_by_the_way and before in _PREPOSITIONS)
            if not is_else:
                return False
        elif word.lower() not in _DETERMINERS:
            before = word.lower()
    return is_else


def _goes_on(after: str, is_meant: Callable[[str], bool]) -> bool:
    """Whether a name goes on with the word behind it."""
    from plainmind.text.terms import query_terms

    if not after.islower() or after in _NO_PART_OF_A_NAME or after.endswith("ly") or CHANGE.match(after):
        return False
    found = query_terms(after)
    return bool(found.terms) and not found.only_stop_words and not is_meant(after)


# What a line says of itself that holds, or no longer does.
HOLDS = pattern(
    r"\b(?:since|current(?:ly)?|now|as of|from now on|switched|seit|aktuell\w*|jetzt|derzeit\w*|ab sofort|desde|ahora"
    r"|actual(?:mente)?|depuis|actuel\w*|maintenant|désormais|attual\w*|adesso|agora|sinds|nu)\b|现在|現在|目前|今は|지금|현재",
    IGNORECASE,
)
OVER = pattern(
    r"\b(?:was|were|used|had been|formerly|previous(?:ly)?|former|war|waren|früher\w*|bisher\w*|ehemalig\w*|damals"
    r"|antes|anterior\w*|era|avant|ancien\w*|était|prima|vroeger)\b|以前|旧|以前は|이전|예전"
    r"|^\W*(?:(?:until|till|up to|bis|hasta|jusqu\w+|fino a|até|tot)\b(?! (?:further|now|weiteres|jetzt|heute))"
    r"|(?:old|alte?[rsn]?)\b)",
    IGNORECASE,
)
ASKS_ABOUT_THEN = pattern(
    r"\b(?:was|were|did|had|used to|until|before|previous(?:ly)?|former(?:ly)?|old|earlier|last|war|waren|hatten?"
    r"|wurde|früher\w*|vorher\w*|bis|alte[rsn]?|damals|era|antes|anterior\w*|hasta|était|avant|ancien\w*)\b"
    r"|以前|之前|旧|前の|이전|예전",
    IGNORECASE,
)
