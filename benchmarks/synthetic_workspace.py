"""A workspace of any size, the same for the same seed, in English, Chinese and Japanese."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from pathlib import Path

WORDS = Path(__file__).parent / "words"  # most frequent first
ENGLISH = (WORDS / "english.txt").read_text(encoding="utf-8").split()
CHINESE = (WORDS / "chinese.txt").read_text(encoding="utf-8").split()
JAPANESE = (WORDS / "japanese.txt").read_text(encoding="utf-8").split()
SYLLABLES = "ka lo mer tin vas or bel dun fi gra hol jen nor pel qui ras"


class Writer:
    """Writes notes; each language has frequent words, rare ones and identifiers, as real notes do."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        # Names that occur once or twice in a workspace are what keyword indexes spend their space on.
        self.vocabularies = {
            "en": [*ENGLISH, *self.rare(SYLLABLES.split(), 3)],
            "zh": [*CHINESE, *self.rare(CHINESE[4:], 2)],
            "ja": [*JAPANESE, *self.rare(JAPANESE[7:], 2)],
        }
        self.weights = {name: zipf(len(words)) for name, words in self.vocabularies.items()}

    def rare(self, parts: list[str], length: int) -> list[str]:
        names = ["".join(chosen).capitalize() for chosen in itertools.product(parts, repeat=length)]
        self.chance.shuffle(names)
        return names

    def sentence(self, language: str) -> str:
        words = self.chance.choices(
            self.vocabularies[language], cum_weights=self.weights[language], k=self.chance.randint(7, 18)
        )
        if language != "en":
            return "".join(words) + "。"
        if self.chance.random() < 0.15:
            words.append(f"`{self.chance.getrandbits(28):07x}`")
        return (" ".join(words) + ".").capitalize()

    def note(self, title: str, language: str, size: int) -> str:
        parts = [f"# {title}\n"]
        written = len(parts[0])
        while written < size:
            heading = f"\n## {self.sentence(language).rstrip('.。')[:40]}\n\n"
            lines = [
                f"- {' '.join(self.sentence(language) for _ in range(self.chance.randint(1, 3)))}\n"
                for _ in range(self.chance.randint(3, 8))
            ]
            parts += [heading, *lines]
            written += sum(len(part.encode()) for part in (heading, *lines))
        return "".join(parts)


def zipf(count: int) -> list[float]:
    """Cumulative weights: the n-th word is n times rarer than the first."""
    return list(itertools.accumulate(1 / rank for rank in range(1, count + 1)))


def write_workspace(folder: Path, *, files: int, total_bytes: int, last_day: dt.date, seed: int = 7) -> int:
    """Write `files` notes, two thirds daily logs that end at `last_day`; return the bytes written."""
    writer = Writer(seed)
    chance = random.Random(seed + 1)
    written = 0
    for number in range(files):
        language = chance.choices(("en", "zh", "ja"), weights=(70, 20, 10))[0]
        if number == 0:
            path = folder / "MEMORY.md"
        elif number % 3:
            path = folder / "memory" / f"{last_day - dt.timedelta(days=number)}.md"
        else:
            path = folder / "memory" / "topics" / f"topic-{number:04}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        # What is left is shared among the files to come, so the total holds however long each one gets.
        size = (total_bytes - written) / (files - number) * chance.uniform(0.6, 1.3)
        text = writer.note(path.stem, language, int(size) if number < files - 1 else total_bytes - written)
        path.write_text(text, encoding="utf-8")
        written += len(text.encode())
    return written


def queries(count: int, seed: int = 11) -> list[str]:
    """Questions in the same three languages, three to six words each."""
    chance = random.Random(seed)
    asked = []
    for _ in range(count):
        words, glue = chance.choices(
            ((ENGLISH[10:], " "), (CHINESE[4:], ""), (JAPANESE[7:], "")), weights=(70, 20, 10)
        )[0]
        asked.append(glue.join(chance.sample(words, chance.randint(3, 6))))
    return asked
