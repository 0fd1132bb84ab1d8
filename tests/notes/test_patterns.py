import pytest

from plainmind.base.errors import ConfigError
from plainmind.notes.discovery import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*.md", ["a.md", "A.MD"], ["x/a.md", "a.mdx"]),
        ("**/note*.md", ["note.md", "x/y/notes.md"], ["x/anote.md"]),
        ("./docs/**/*.md", ["docs/a.md", "docs/x/a.md"], ["a.md", "xdocs/a.md"]),
        ("docs/**", ["docs/a.md", "docs/x/a.md"], ["doc/a.md"]),
        ("**/**/**/a.md", ["a.md", "x/y/z/a.md"], ["b.md"]),
        ("?.md", ["a.md", "é.md"], ["ab.md", "/.md"]),
        ("[a-c].md", ["a.md", "C.md"], ["d.md"]),
        ("[!a-c].md", ["d.md"], ["a.md", "/.md"]),
        ("{one,two}/*.md", ["one/a.md", "two/b.md"], ["three/a.md"]),
        ("**/*.{md,mdx}", ["a.md", "x/b.md"], ["c.txt"]),
        ("a+(b).md", ["a+(b).md"], ["aab.md"]),
        ("a[.md", ["a[.md"], ["a.md"]),
        ("a{.md", ["a{.md"], ["a.md"]),
    ],
)
def test_a_pattern_takes_and_leaves(pattern, taken, left):
    compiled = compile_pattern(pattern)
    assert compiled is not None
    assert [path for path in taken + left if compiled.fullmatch(path)] == taken


def test_the_default_pattern_needs_no_matching():
    assert compile_pattern("**/*.md") is None


def test_a_pattern_that_cannot_be_read_is_a_clear_error():
    with pytest.raises(
        ConfigError, match=r"the pattern `\[z-a\].md` of an extra path cannot be read"
    ) as caught:
        compile_pattern("[z-a].md")
    assert "**/*.md" in caught.value.hint
