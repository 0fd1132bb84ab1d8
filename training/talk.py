"""Questions made by rule from conversations, for a reranker that learns what a teacher says about them.

A question that one person asks another becomes one about that person ("Have you been to Rome?" → "Has Anna been to
Rome?"), and what somebody says about himself becomes a question about it ("I sold my car last week" → "When did Anna
sell her car?"). What was said next to it answers; the rest of the conversation does not. Conversations whose people
have no names get some, and are written as people keep them: with days, as lines of names,
or as a user and an assistant.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple


def _listed(words: str) -> list[str]:
    return words.split()


WOMEN = _listed(
    "Anna Maria Emma Olivia Sophie Julia Laura Sarah Rachel Hannah Grace Chloe Lucy Alice Clara Nora Ruth Helen Diana "
    "Priya Mei Yuki Fatima Leila Ingrid Carmen Rosa Lena Petra Nadia Zoe Amy Megan Kate Jane Susan Linda Karen Donna "
    "Tina Monica Erica Paula Vera Irene Judy Amber Holly Molly Daisy Ivy Naomi Esther Miriam Tara Bella Stella Wendy"
)
MEN = _listed(
    "Ben Tom Jack Oliver Harry George Leo Max Paul Peter Mark Luke Simon Adam David Daniel Michael James Robert "
    "William Andrew Kevin Brian Steve Jason Eric Ryan Aaron Carlos Diego Ahmed Omar Raj Arjun Wei Kenji Hiro Lars Sven "
    "Pierre Marco Luca Ivan Igor Victor Hugo Felix Oscar Sam Alex Chris Nick Greg Dave Frank Henry Walter Martin "
    "Philip Neil"
)
_IRREGULAR = {
    "went": "go", "got": "get", "had": "have", "did": "do", "made": "make", "took": "take", "came": "come",
    "saw": "see", "bought": "buy", "found": "find", "thought": "think", "told": "tell", "said": "say", "gave": "give",
    "knew": "know", "felt": "feel", "left": "leave", "met": "meet", "ran": "run", "read": "read", "wrote": "write",
    "ate": "eat", "drank": "drink", "drove": "drive", "flew": "fly", "grew": "grow", "heard": "hear", "kept": "keep",
    "learnt": "learn", "lost": "lose", "paid": "pay", "played": "play", "put": "put", "sold": "sell", "sent": "send",
    "slept": "sleep", "spent": "spend", "spoke": "speak", "started": "start", "stood": "stand", "taught": "teach",
    "tried": "try", "understood": "understand", "woke": "wake", "won": "win", "wore": "wear", "began": "begin",
    "built": "build", "broke": "break", "brought": "bring", "caught": "catch", "chose": "choose", "cut": "cut",
    "fell": "fall", "forgot": "forget", "held": "hold", "hurt": "hurt", "led": "lead", "let": "let", "quit": "quit",
    "rode": "ride", "sang": "sing", "sat": "sit", "set": "set", "shot": "shoot", "showed": "show", "studied": "study",
    "swam": "swim", "threw": "throw", "ended": "end", "needed": "need", "wanted": "want", "added": "add",
    "visited": "visit", "used": "use", "lived": "live", "moved": "move", "loved": "love", "liked": "like",
    "worked": "work", "hated": "hate", "decided": "decide", "noticed": "notice", "realized": "realize",
    "finished": "finish", "watched": "watch", "helped": "help", "talked": "talk", "walked": "walk", "asked": "ask",
    "called": "call", "joined": "join", "cooked": "cook", "baked": "bake", "painted": "paint", "planted": "plant",
    "graduated": "graduate", "married": "marry", "adopted": "adopt", "traveled": "travel", "travelled": "travel",
    "enjoyed": "enjoy", "stayed": "stay", "missed": "miss", "passed": "pass", "failed": "fail", "fixed": "fix",
    "created": "create", "changed": "change", "switched": "switch", "signed": "sign", "applied": "apply",
    "released": "release", "shipped": "ship", "launched": "launch", "wired": "wire", "hired": "hire",
    "attended": "attend", "ordered": "order", "dropped": "drop", "stopped": "stop", "planned": "plan", "cried": "cry",
    "dreamed": "dream",
}  # fmt: skip
_PRESENT = _listed(
    "like love want need hate enjoy live work play study teach own use watch read write cook run prefer think believe "
    "remember know have drive speak collect listen travel plan hope wish feel miss buy drink eat sing dance paint "
    "build wear follow support attend spend save fear dislike understand agree disagree recommend volunteer sleep "
    "exercise"
)
_FILLERS = re.compile(
    r"^(?:(?:yeah|yes|yep|no|nope|well|oh|ooh|ok|okay|so|and|awesome|sorry|interesting|great|totally|same|ha|hahaha|"
    r"hahah|that's (?:cool|sweet|awesome|great|interesting|so cool)|uh|um|wait|anyway|anyways|mmm|gotcha|yup|but|haha|"
    r"hmm|wow|cool|nice|true|right|sure|actually|honestly|personally|also|then|because|although|maybe|like|lol|ah|hey|"
    r"hi|hello|i think|i guess|i mean|you know)[,!.:) ]+)+",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"^i(?: (?:just|also|actually|really|recently|usually|always|never|often|still|once))? ([a-z]+) (.+)$",
    re.IGNORECASE,
)
_AM = re.compile(r"^i(?:'m| am|m) (?:just |also |actually |really |currently |still )?(.+)$", re.IGNORECASE)
_HAVE = re.compile(
    r"^i(?:'ve| have) (?:just |also |actually |really |already )?"
    r"([a-z]+(?:ed|en|een|ought|one|ade|ept|old|ad|it|et)) (.+)$",
    re.IGNORECASE,
)
_WILL = re.compile(
    r"^i(?:'ll| will|'m going to|'m gonna| am going to|'m planning to|m going to) ([a-z]+) (.+)$",
    re.IGNORECASE,
)
_MINE = re.compile(
    r"^my ([a-z' -]{3,40}?) (is|are|was|were|has|have|had|just|got|works|lives|loves|likes) (.+)$",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"\b(?:mom|mother|dad|father|wife|husband|sister|brother|friend|boss|teacher|son|daughter)\b"
)
_NOT_ABOUT = re.compile(
    r"(?:how are you|what about you|how about you|how's it|are you there|do you know what|what do you mean|can you|"
    r"could you|would you mind|did you know|do you know|you know|you\b)"
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]+")
_AS_SUBJECT = re.compile(
    r"\b(after|when|if|that|where|what|how|because|before|while|until|once|than|as|think|since|so|and|or) you\b",
    re.IGNORECASE,
)
_PLACES = re.compile(r" (?:in|at|to|from|near) .*$")
_ENDS = re.compile(
    r"\s*(?:,| but | because | since | so | and then | which | when | while |\(|;| - ).*$", re.IGNORECASE
)
_TIMES = re.compile(
    r",? ?\b(?:yesterday|today|tonight|tomorrow|recently|"
    r"last (?:night|week|weekend|month|year|summer|winter|spring|fall)|this (?:morning|week|weekend|month|year|summer)|"
    r"next (?:week|weekend|month|year|summer)|(?:a|two|three|few|several|\d+) (?:days?|weeks?|months?|years?) ago|"
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:19|20)\d\d)\b",
    re.IGNORECASE,
)


class Turn(NamedTuple):
    """What somebody says."""

    speaker: str
    text: str


class Made(NamedTuple):
    """A question, the passage that answers it, and passages of the same conversation that do not."""

    question: str
    passage: str
    others: tuple[str, ...]


class _Person(NamedTuple):
    """How questions speak of somebody."""

    name: str  # "I" for whoever asks
    whose: str
    they: str
    them: str
    their: str

    def said(self, does: str, do: str) -> str:
        return do if self.name == "I" else does


def _person(name: str, chance: random.Random) -> _Person:
    if name == "I":
        return _Person("I", "my", "I", "me", "my")
    if name in WOMEN and chance.random() < 0.8:
        return _Person(name, f"{name}'s", "she", "her", "her")
    if name in MEN and chance.random() < 0.8:
        return _Person(name, f"{name}'s", "he", "him", "his")
    return _Person(name, f"{name}'s", "they", "them", "their")


def _swapped(text: str, speaker: _Person, listener: str) -> str:
    """A piece of what somebody said, as others say it of him."""
    if speaker.name == "I":
        return text
    new = {
        "i": speaker.they, "me": speaker.them, "my": speaker.their, "mine": speaker.their, "we": "they",
        "us": "them", "our": "their", "myself": speaker.them, "you": listener, "your": f"{listener}'s",
        "i'm": f"{speaker.they} is", "i've": f"{speaker.they} has", "i'd": f"{speaker.they} would",
        "im": speaker.they,
    }  # fmt: skip
    words = []
    for word in text.split(" "):
        bare = word.lower().strip(".,!?")
        words.append(new[bare] + word[len(bare) :] if bare in new and word.lower().startswith(bare) else word)
    return " ".join(words)


_AUXILIARIES = (  # what is asked of a listener, and what is said of him and of oneself
    ("do you", "does", "do"), ("don't you", "doesn't", "don't"), ("are you", "is", "am"), ("were you", "was", "was"),
    ("have you", "has", "have"), ("aren't you", "isn't", "am"), ("did you", "did", "did"),
    ("would you", "would", "would"), ("will you", "will", "will"), ("can you", "can", "can"),
    ("could you", "could", "could"), ("should you", "should", "should"),
    ("you are", "is", "am"), ("you're", "is", "am"), ("you've", "has", "have"),
    ("you have", "has", "have"), ("you were", "was", "was"),
)  # fmt: skip


def ask_back(question: str, person: _Person, asker: str) -> str | None:
    """A question that was put to somebody, as one about him."""
    text = _FILLERS.sub("", question.strip()).strip()
    lower = text.lower()
    is_about_him = re.search(r"\byou(?:r|rs|'re|'ve|'d)?\b", lower) and not _NOT_ABOUT.match(lower)
    if not is_about_him or not 4 <= len(text.split()) <= 24:
        return None
    called = person.name
    for old, does, do in _AUXILIARIES:
        pattern = re.compile(rf"\b{old}\b", re.IGNORECASE)
        if pattern.search(text):
            said = person.said(does, do)
            text = pattern.sub(
                f"{called} {said}" if old.startswith("you") else f"{said} {called}", text, count=1
            )
            called = person.they
    is_named = called != person.name or person.name == "I"
    text = re.sub(r"\byour\b", person.their if is_named else person.whose, text, count=1, flags=re.IGNORECASE)
    text = re.sub(r"\byour\b", person.their, text, flags=re.IGNORECASE)
    if not is_named and person.whose not in text:
        text = re.sub(r"\byou\b", person.name, text, count=1, flags=re.IGNORECASE)
    text = re.sub(_AS_SUBJECT, rf"\1 {person.they}", text)
    text = re.sub(r"\byou\b", person.them, text, flags=re.IGNORECASE)
    text = re.sub(r"\byourself\b", "themselves", text, flags=re.IGNORECASE)
    if person.name != "I":
        text = re.sub(r"\b(?:my|our)\b", f"{asker}'s", text, count=1)
    text = text[0].upper() + text[1:]
    return text if text.endswith("?") else text + "?"


def ask_about(sentence: str, person: _Person, listener: str, chance: random.Random) -> str | None:
    """A question that a sentence about oneself answers."""
    text = _FILLERS.sub("", sentence.strip()).strip().rstrip(".!")
    if not 4 <= len(text.split()) <= 30 or "?" in text:
        return None
    short = _TIMES.sub("", _ENDS.sub("", text))
    asking: tuple[tuple[re.Pattern[str], Callable[..., list[str]]], ...] = (
        (_WILL, _of_plans), (_HAVE, _of_past), (_AM, _of_being), (_MINE, _of_things),
    )  # fmt: skip
    for pattern, ask in asking:
        if (found := pattern.match(short)) is not None:
            parts = [part.lower() for part in found.groups()[:-1]]
            rest = _swapped(found.groups()[-1].strip(" ,."), person, listener)
            return chance.choice(ask(person, *parts, rest))
    if (found := _FIRST.match(short)) is None:
        return None
    verb, rest = found[1].lower(), _swapped(found[2].strip(" ,."), person, listener)
    if verb in _IRREGULAR:
        return chance.choice(_of_deeds(person, _IRREGULAR[verb], rest, has_time=bool(_TIMES.search(text))))
    return chance.choice(_of_habits(person, verb, rest)) if verb in _PRESENT else None


def _of_plans(person: _Person, verb: str, what: str) -> list[str]:
    name = person.name
    return [
        f"What {person.said('is', 'am')} {name} going to {verb}?",
        f"What {person.said('does', 'do')} {name} plan to {verb}?",
        f"When will {name} {verb} {what}?",
        f"{person.said('Is', 'Am')} {name} going to {verb} {what}?",
        f"What are {person.whose} plans about {_matter(what)}?",
    ]


def _of_past(person: _Person, verb: str, what: str) -> list[str]:
    has, name = person.said("has", "have"), person.name
    return [
        f"{has.capitalize()} {name} {verb} {what}?",
        f"How long {has} {name} {verb} {what}?",
        f"What {has} {name} {verb}?",
        f"Where {has} {name} {verb}?",
        f"How often {has} {name} {verb} {what}?",
    ]


def _of_being(person: _Person, what: str) -> list[str]:
    is_, name = person.said("is", "am"), person.name
    begins = what.split(" ", maxsplit=1)[0]
    found = [
        f"{is_.capitalize()} {name} {what}?",
        f"Why {is_} {name} {what}?",
        f"How {person.said('does', 'do')} {name} feel about {_matter(what)}?",
    ]
    if begins.endswith("ing"):
        found += [
            f"What {is_} {name} {begins}?",
            f"Where {is_} {name} {begins}?",
            f"Who {is_} {name} {begins} with?",
        ]
    return found


def _of_things(person: _Person, thing: str, verb: str, _: str) -> list[str]:
    whose = person.whose
    who = "Who" if _PEOPLE.search(thing) else "What"
    is_ = verb if verb in ("is", "are", "was", "were") else "is"
    return [
        f"{who} {is_} {whose} {thing}?",
        f"What does {whose} {thing} do?" if who == "Who" else f"What {is_} {whose} {thing}?",
        f"What is known about {whose} {thing}?",
        f"{whose[0].upper() + whose[1:]} {thing}",
        f"Tell me about {whose} {thing}.",
    ]


def _of_deeds(person: _Person, base: str, what: str, *, has_time: bool) -> list[str]:
    name = person.name
    where = _PLACES.sub("", what)
    found = [f"What did {name} {base}?", f"Why did {name} {base} {what}?", f"When did {name} {base} {what}?"]
    if has_time:
        found += [f"When did {name} {base} {what}?", f"How long ago did {name} {base} {what}?"]
    else:
        found += [
            f"Did {name} {base} {what}?",
            f"What did {name} {base} {_preposition(what)}?",
            f"How did {name} {base} {where}?",
        ]
    if where != what and where:
        found += [f"Where did {name} {base} {where}?"] * 2
    if " with " in what:
        found += [f"Who did {name} {base} {what.split(' with ', maxsplit=1)[0]} with?"] * 2
    return found


def _of_habits(person: _Person, verb: str, what: str) -> list[str]:
    does, name = person.said("does", "do"), person.name
    if verb in ("think", "believe", "feel", "know", "remember", "agree"):
        return [
            f"What {does} {name} think about {_matter(what)}?",
            f"What did {name} say about {_matter(what)}?",
        ]
    found = [
        f"What {does} {name} {verb}?",
        f"{does.capitalize()} {name} {verb} {what}?",
        f"Why {does} {name} {verb} {what}?",
        f"What kind of {what.rsplit(' ', maxsplit=1)[-1]} {does} {name} {verb}?",
        f"How often {does} {name} {verb} {what}?",
    ]
    if verb in ("live", "work", "study", "teach", "travel"):
        found.append(f"Where {does} {name} {verb}?")
    return found


def _preposition(what: str) -> str:
    """The part of what follows a verb that begins with a preposition, or nothing."""
    found = re.search(r"\b(?:for|with|about|from|during|after|before|at|in|on) .*$", what)
    return found[0] if found else ""


_COMMON = frozenset(
    _listed(
        "the and that this with from have has had been were was are for you your they them their his her she him its "
        "about just really very much more most some any all one would could should will can what when where which who "
        "how why there here then than too also like know think get got going because into out over other people thing "
        "things lot something good great nice kind sure yeah well way even only make made want see say said time did "
        "does doing don't didn't haha hahaha actually pretty either such though still always never maybe lots many "
        "those these between during different better best around back come came take took it's that's i'm i've he's "
        "she's we're you're they're not but being our own"
    )
)


def _matter(text: str) -> str:
    """What a text is about: its last words that say something."""
    words = [one for one in _WORDS.findall(text) if one.lower() not in _COMMON and len(one) > 2]
    return " ".join(words[-3:]) if words else text


def ask_keywords(
    text: str, person: _Person, frequency: Mapping[str, int], chance: random.Random
) -> str | None:
    """What somebody said about the rarest things that he named."""
    words = [
        one for one in dict.fromkeys(_WORDS.findall(text)) if one.lower() not in _COMMON and len(one) > 3
    ]
    rare = sorted(words, key=lambda one: frequency.get(one.lower(), 0))[:3]
    if len(rare) < 2:
        return None
    chosen = " ".join(sorted(rare[: chance.choice((1, 2, 2, 3))], key=text.index))
    name = person.name
    return chance.choice(
        (
            f"What did {name} say about {chosen}?",
            f"What {person.said('does', 'do')} {name} think of {chosen}?",
            f"{person.whose} {chosen}",
            chosen if name == "I" else f"{chosen} {name}",
            f"Which {chosen} did {name} mention?",
            f"What is {person.whose} opinion on {chosen}?",
        )
    )


def _slip(question: str, chance: random.Random) -> str:
    """Some questions lose a word that says little, as people leave them out."""
    words = question.split(" ")
    if len(words) > 6 and chance.random() < 0.3:
        at = chance.randrange(3, len(words) - 1)
        del words[at]
    return " ".join(words)


_LINES = (
    "{0}: {1}",
    "{0}: {1}",
    "{0}: {1}",
    "**{0}**: {1}",
    "- {0}: {1}",
    "**{0}:** {1}",
    "[{0}] {1}",
    "{0} — {1}",
)


def _heading(day: date, names: Sequence[str], chance: random.Random) -> str:
    hour, minute = chance.randrange(8, 22), chance.randrange(60)
    return chance.choice(
        (
            "",
            "",
            f"{day}",
            f"{day}",
            f"{day:%A, %d %B %Y}",
            f"{day} › Chat",
            f"Chats › {day}",
            f"{day} › {' and '.join(names[:2])}",
            f"{day} › Conversation {chance.randrange(1, 30)} ({day:%A} {hour}:{minute:02d})",
            f"{names[0]} › {day:%d %B %Y}",
            f"Talk of {day:%d %b %Y}",
        )
    )


def _window(
    lines: Sequence[str], at: int, room: int, left_out: int | None, chance: random.Random
) -> tuple[str, range]:
    """Lines around one, as many as fit; `left_out` is not among them."""
    first = last = at
    room -= len(lines[at])
    while True:
        sides = []
        if first > 0 and first - 1 != left_out and len(lines[first - 1]) < room:
            sides.append(-1)
        if last + 1 < len(lines) and last + 1 != left_out and len(lines[last + 1]) < room:
            sides.append(1)
        if not sides:
            break
        if chance.choice(sides) < 0:
            first -= 1
            room -= len(lines[first]) + 1
        else:
            last += 1
            room -= len(lines[last]) + 1
    return "\n".join(lines[first : last + 1]), range(first, last + 1)


_LONGEST_LINE = 420
_MOST_OTHERS = 6


def make_questions(
    turns: Sequence[Turn], frequency: Mapping[str, int], chance: random.Random, *, most: int, named: bool
) -> Iterator[Made]:
    """Questions about a conversation of two or more people; `named`: its speakers have names that stay."""
    speakers = list(dict.fromkeys(one.speaker for one in turns))
    names = {one: one.split(" ", maxsplit=1)[0] for one in speakers} if named else _names(speakers, chance)
    line = chance.choice(_LINES)
    lines = [line.format(names[one.speaker], " ".join(one.text.split())[:_LONGEST_LINE]) for one in turns]
    day = date(2015, 1, 1) + timedelta(days=chance.randrange(4_000))
    asked = list(_asked(turns, names, frequency, chance))
    chance.shuffle(asked)
    for said, at, before in asked[:most]:
        if not 3 <= len(said.split()) <= 18:
            continue
        question = _slip(said, chance)
        if chance.random() < 0.06 and question.endswith("?"):
            when = chance.choice((f"on {day:%d %B %Y}", f"in {day:%B %Y}", f"in {day.year}"))
            question = f"{question[:-1]} {when}?"
        heading = _heading(day, list(names.values()), chance) if chance.random() < 0.8 else ""
        left_out = before if chance.random() < 0.6 else None
        passage, taken = _window(lines, at, chance.randrange(100, 470), left_out, chance)
        others = [f"{heading}\n{one}".strip() for one in _others(lines, at, taken, chance)]
        yield Made(question, f"{heading}\n{passage}".strip(), tuple(dict.fromkeys(others)))


def _names(speakers: Sequence[str], chance: random.Random) -> dict[str, str]:
    """Names for people who have none; of two, one may be whoever keeps the notes."""
    if len(speakers) == 2 and chance.random() < 0.3:
        pair = chance.choice(
            (("User", "Assistant"), ("Me", chance.choice(WOMEN + MEN)), ("User", "Assistant"))
        )
        return dict(zip(speakers, pair, strict=True))
    first = chance.choice(chance.choice((WOMEN, MEN)))
    drawn = [one for one in chance.sample(WOMEN + MEN, len(speakers) + 1) if one != first]
    return dict(zip(speakers, [first, *drawn], strict=False))


def _asked(
    turns: Sequence[Turn], names: Mapping[str, str], frequency: Mapping[str, int], chance: random.Random
) -> Iterator[tuple[str, int, int | None]]:
    """Questions, the turn that answers each, and the turn that asked it, if one did."""
    for at, turn in enumerate(turns):
        name = names[turn.speaker]
        if name == "Assistant":
            continue
        person = _person("I" if name in ("User", "Me") else name, chance)
        listener = next((other for speaker, other in names.items() if speaker != turn.speaker), "somebody")
        before = turns[at - 1] if at else turn
        if before.speaker != turn.speaker and len(turn.text.split()) >= 5:
            listener = names[before.speaker]
            for sentence in _SENTENCES.split(before.text):
                if sentence.endswith("?") and (made := ask_back(sentence, person, listener)):
                    yield made, at, at - 1
        for sentence in _SENTENCES.split(turn.text):
            if made := ask_about(sentence, person, listener, chance):
                yield made, at, None
        if len(turn.text) > 60 and chance.random() < 0.25:
            made = ask_keywords(turn.text, person, frequency, chance)
            if made:
                yield made, at, None


def _others(lines: Sequence[str], at: int, taken: range, chance: random.Random) -> Iterator[str]:
    """Other parts of a conversation, without the turn that answers and what was shown with it."""
    found = 0
    for _ in range(12):
        other = chance.randrange(len(lines))
        if abs(other - at) < 2 or other in taken or found >= _MOST_OTHERS:
            continue
        text, there = _window(lines, other, chance.randrange(100, 470), at, chance)
        if at not in there and not set(there) & set(taken):
            found += 1
            yield text
