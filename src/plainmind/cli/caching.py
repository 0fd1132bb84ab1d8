"""`cache`: what the cache of embeddings holds, and making it smaller."""

from __future__ import annotations

import argparse

from plainmind.cli.console import Console, visible
from plainmind.cli.opening import opened
from plainmind.cli.options import commands_below, describe, whole_number
from plainmind.cli.wording import counted, size_in_words

_SIZES = {"": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Say what `cache` takes."""
    describe(
        parser,
        """\
Show what the cache of embeddings holds, or make it smaller. It remembers vectors that took long or cost money, so that
text is not sent twice; the built-in model does without. Nothing in it is needed: what is dropped is embedded again.

Reads and writes the cache in ~/.plainmind, nothing else.""",
        examples=(
            "plainmind cache stats",
            "plainmind cache prune --unused-days 90",
            "plainmind cache prune --provider openai --max-size 100MB",
        ),
        run=run_stats,
    )
    add = commands_below(parser)

    add("stats", "show what it holds, by provider and model", "plainmind cache stats", run_stats)
    pruning = add(
        "prune",
        "drop what is too old, of one provider, or too much; without options what is beyond the settings",
        "plainmind cache prune --unused-days 90",
        run_prune,
    )
    pruning.add_argument(
        "--unused-days", metavar="N", type=whole_number(0, 36_500), help="drop what was not used for N days"
    )
    pruning.add_argument("--provider", metavar="NAME", help="drop only what this provider made")
    pruning.add_argument(
        "--max-entries", metavar="N", type=whole_number(0), help="keep the N that were used last"
    )
    pruning.add_argument(
        "--max-size", metavar="SIZE", type=size, help="keep as many as fit, such as 100MB; the last used stay"
    )


def run_stats(arguments: argparse.Namespace, console: Console) -> int:
    """Print what the cache holds."""
    from datetime import UTC, datetime

    from plainmind.memory.caching import cache_stats

    with opened(arguments) as memory:
        stats = cache_stats(memory.parts)
    if console.json:
        rows = [
            {
                "provider": held.provider,
                "model": held.model,
                "endpoint": held.endpoint,
                "entries": held.entries,
                "bytes": held.bytes,
                "usedFirst": held.used_first_ns // 1_000_000,
                "usedLast": held.used_last_ns // 1_000_000,
            }
            for held in stats.held
        ]
        console.result(
            {
                "path": stats.path,
                "used": stats.is_used,
                "entries": stats.entries,
                "bytes": stats.bytes,
                "fileBytes": stats.file_bytes,
                "maxEntries": stats.max_entries,
                "maxBytes": stats.max_bytes,
                "held": rows,
            }
        )
        return 0
    console.answer(f"{stats.path}{'' if stats.is_used else ' (the provider of now does not use it)'}")
    console.answer(
        f"{counted(stats.entries, 'vector')} of at most {stats.max_entries:,},"
        f" {size_in_words(stats.bytes)} of at most {size_in_words(stats.max_bytes)}"
    )
    for held in stats.held:
        last = datetime.fromtimestamp(held.used_last_ns / 1e9, UTC).date()
        console.answer(
            f"  {visible(held.provider)} {visible(held.model)}: {counted(held.entries, 'vector')},"
            f" {size_in_words(held.bytes)}, last used {last}"
        )
    return 0


def run_prune(arguments: argparse.Namespace, console: Console) -> int:
    """Make the cache smaller, and say by how much."""
    from plainmind.memory.caching import prune_cache

    with opened(arguments) as memory:
        pruned = prune_cache(
            memory.parts,
            unused_days=arguments.unused_days,
            provider=arguments.provider,
            max_entries=arguments.max_entries,
            max_bytes=arguments.max_size,
        )
    if console.json:
        console.result({"entries": pruned.entries, "bytes": pruned.bytes})
    else:
        console.say(f"dropped {counted(pruned.entries, 'vector')}, {size_in_words(pruned.bytes)}")
    return 0


def size(text: str) -> int:
    """Read `100MB`, `1.5 GB` or a number of bytes."""
    number = text.strip().lower().rstrip("bgkm")
    unit = text.strip().lower()[len(number) :].strip()
    try:
        amount = float(number) * _SIZES[unit]
    except (ValueError, KeyError):
        amount = -1.0
    if not 0 <= amount < 1e18:
        raise argparse.ArgumentTypeError(f"`{text}` must be a size such as 100MB")
    return int(amount)
